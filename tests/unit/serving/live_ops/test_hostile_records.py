"""What comes to live operations, whatever it is, costs no state of another player and no message that Kafka refuses."""

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.games import TextLengths
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.errors import TransientError
from gamelake.serving.live_ops.decider import LiveOpsDecider
from gamelake.serving.live_ops.plan import Publication, StatePlan
from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.hour import LastHour, purchases
from gamelake.serving.live_ops.states.players import HOUR
from gamelake.streaming.driver.decision import Parallelism
from gamelake.streaming.kafka.source import PlannedOffsets
from tests.unit.poison.live_ops_attacks import live_ops_input
from tests.unit.properties import examples
from tests.unit.serving.live_ops.player_events import PlayerEvent, as_table
from tests.unit.streaming.streams import TOPIC_ID
from tests.unit.streaming.tasks import GAMES, KafkaTaskRecord, TaskLakehouse, a_record, as_batch, numbered

NOW, MINUTE = 29_500_000, 60_000_000
FAR = (-1_035_593_760, -1, 0, NOW)  # the first minute of year 1 is the first of them


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    # Longer texts than these lengths are dead letters, which live operations don't see.
    return TaskLakehouse(tmp_path, msgspec.structs.replace(GAMES, lengths=TextLengths(default=900_000)))


def test_an_event_whose_player_id_is_too_long_counts_in_its_minute_and_has_no_player(lakehouse: TaskLakehouse) -> None:
    records = numbered([a_record(2, gamerId="x" * 4_097), a_record(2, gamerId="x" * 4_096)])

    taken = live_ops_input(lakehouse, [as_batch(records)])

    assert taken.player_events["gamer_id"].to_pylist() == ["x" * 4_096]
    assert taken.counts("events") == 2


@pytest.mark.parametrize(("field", "column"), [("platform", "platform"), ("appVersion", "app_version")])
def test_of_a_text_that_is_too_long_for_a_state_nothing_is_known(
    lakehouse: TaskLakehouse, field: str, column: str
) -> None:
    records = numbered([a_record(2, eventParams={field: "x" * size}) for size in (0, 4_096, 4_097, 800_000)])

    taken = live_ops_input(lakehouse, [as_batch(records)])

    assert taken.player_events[column].to_pylist() == [None, "x" * 4_096, None, None]


def test_records_that_are_skipped_are_not_decoded_and_their_offsets_count_as_read(lakehouse: TaskLakehouse) -> None:
    poison = KafkaTaskRecord(value=b"poison")
    records = numbered([a_record(2, gamerId="before"), poison, poison, a_record(2, gamerId="after")])
    skipped = SkippedRecords(topic_id=TOPIC_ID, partition=0, first=1, last=2, problem="killed")

    taken = live_ops_input(lakehouse, [as_batch(records), as_batch(records[1:2])], [skipped])

    assert taken.player_events["gamer_id"].to_pylist() == ["before", "after"]
    assert [(each.skipped, [(at.first, at.last) for at in each.offsets]) for each in taken.readings] == [
        (2, [(0, 3)]),
        (1, [(1, 1)]),
    ]


def test_a_second_attempt_at_a_batch_finds_the_purchases_again_that_leave_the_hour_with_it() -> None:
    hour, at = LastHour(), 100 * HOUR
    hour.add(purchases(as_table([PlayerEvent(key=7, at=at, micros=5)]), np.ones(1, np.bool_), at))

    attempts = [hour.leaving(at, at + 2 * HOUR) for _ in range(2)]

    assert [(keys.tolist(), micros.tolist()) for keys, micros in attempts] == [([7], [5])] * 2
    hour.forget(at + 2 * HOUR)
    assert hour.leaving(at, at + 2 * HOUR)[0].tolist() == []


class NoRecords:
    """The records of a batch that has none."""

    def process(self, *_: object) -> "NoRecords":
        """See `BatchRecords`; also stands for the results of the tasks."""
        return self

    repartitionById = mapInArrow = process  # noqa: N815 # Spark's names

    def collect(self) -> list[object]:
        return []


class FailingObserver:
    """Fails after the minutes were judged."""

    def judged(self, *_: object) -> None:
        raise OSError("no space left on device")


def test_a_failure_after_the_minutes_were_counted_is_no_reason_to_count_them_again(lakehouse: TaskLakehouse) -> None:
    decider = LiveOpsDecider(
        reading=lakehouse.plan(),
        players=cast("Publication", None),
        parallelism=Parallelism(1, 1),
        watching=Watching(Detector(), MINUTE),
        signals=cast("Any", None),
        observer=FailingObserver(),
    )
    state = StatePlan(folder="state", seed="seed", batch_id=0, shares=1, moment=0, clock=0)

    with pytest.raises(TransientError, match="OSError in"):
        decider.decide(cast("Any", NoRecords()), PlannedOffsets({}, {}), state)


_MINUTES = st.one_of(st.integers(NOW - 100, NOW), st.sampled_from(FAR), st.integers(-(2**40), NOW))
_COUNTS = st.one_of(st.integers(1, 1_000), st.just(10**9))
_BOOKINGS = st.sampled_from([0, 5, 10**18, -(10**18), 2**63 - 1, -(2**63)])
_ROWS = st.tuples(
    _MINUTES, st.sampled_from("abcde\0"), st.text(max_size=4), _COUNTS, _COUNTS, _COUNTS, _BOOKINGS
)  # fmt: skip
_NEWEST = st.one_of(st.integers(NOW - 100, NOW), st.sampled_from(FAR)).map(lambda minute: minute * MINUTE)


@given(batches=st.lists(st.tuples(st.lists(_ROWS, min_size=1, max_size=20), _NEWEST), max_size=5))
@examples(60)
def test_each_event_is_in_one_judged_minute_or_late_or_in_one_that_is_open_whatever_its_values(
    batches: list[tuple[list[tuple[object, ...]], int]],
) -> None:
    watching, judged = Watching(Detector(), MINUTE), 0
    for rows, newest in batches:
        counts = pa.table(dict(zip(COUNTS_SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)))
        judgement = watching.judge([counts.cast(COUNTS_SCHEMA)], [{0: newest}])
        judged += sum(judgement.closed["events"].to_pylist()) + judgement.late
        carried = watching.carried()
        watching.go_on_from(carried)

    sent = sum(int(str(row[3])) for rows, _ in batches for row in rows)
    assert judged + sum(watching.carried()["events"].to_pylist()) == sent
