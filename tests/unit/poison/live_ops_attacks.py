"""Hostile records as the tasks of live operations take them, with the events of another game."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.kafka import KafkaAccess
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.serving.live_ops.plan import LiveOpsPlan, Publication, StatePlan
from gamelake.serving.live_ops.reading import Reading, ReadTask, ShareEvents
from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA
from gamelake.serving.live_ops.states.state_files import decode_table
from tests.unit.poison.budgets import budget
from tests.unit.poison.kafka_attacks import (
    GAMES,
    NEIGHBOUR,
    KafkaAttack,
    a_good_record,
    as_record_batch,
    records_of,
    slow_registry,
)
from tests.unit.streaming.tasks import NOON, TaskLakehouse

_LONGEST = 4_096
_CLOCK = int(NOON.timestamp()) * 1_000_000


@dataclass(frozen=True, slots=True)
class LiveOpsInput:
    """What the tasks read: what players did (`PLAYER_EVENTS_SCHEMA`), and the readings."""

    player_events: pa.Table
    readings: Sequence[Reading]

    def counts(self, name: str) -> int:
        """The sum of a column of the minutes."""
        minutes = [decode_table(each.counts) for each in self.readings]
        return pc.sum(pa.concat_tables([COUNTS_SCHEMA.empty_table(), *minutes])[name]).as_py() or 0


def live_ops_input(
    lakehouse: TaskLakehouse, batches: Iterable[pa.RecordBatch], skipped: Sequence[SkippedRecords] = ()
) -> LiveOpsInput:
    """Read batches, each in a task of its own."""
    state = StatePlan(folder="state", seed="seed", batch_id=0, shares=2, moment=0, clock=_CLOCK)
    nowhere = Publication(KafkaAccess("localhost:1"), "states", 1, b"")
    task = ReadTask(LiveOpsPlan(reading=lakehouse.plan(skipped=tuple(skipped)), state=state, players=nowhere))
    rows = chain.from_iterable(task(iter([batch])) for batch in batches)
    found = [msgspec.msgpack.decode(each, type=ShareEvents) for row in rows for each in row["events"].to_pylist()]
    return LiveOpsInput(
        pa.concat_tables([decode_table(each.player_events) for each in found]),
        [each.reading for each in found if each.reading is not None],
    )


def check_live_ops_attack(attack: KafkaAttack, folder: Path) -> None:
    """Read hostile records; each is accounted for, no text is too long, and the neighbour's events count."""
    hostile = records_of(replace(attack, invented=min(attack.invented, 40)))
    by_partition = [
        [a_good_record(partition), *(each for each in hostile if each.partition == partition), a_good_record(partition)]
        for partition in (0, 1)
    ]
    batches = [as_record_batch(number, list(enumerate(records))) for number, records in enumerate(by_partition)]
    with slow_registry(), budget():
        taken = live_ops_input(TaskLakehouse(folder, GAMES), batches)
    offsets = [(each.first, each.last) for reading in taken.readings for each in reading.offsets]
    assert offsets == [(0, len(records) - 1) for records in by_partition]
    assert pc.sum(pc.equal(taken.player_events["game"], NEIGHBOUR.name)).as_py() >= 4
    for name in ("gamer_id", "platform", "app_version", "country"):
        assert (pc.max(pc.binary_length(taken.player_events[name])).as_py() or 0) <= _LONGEST
