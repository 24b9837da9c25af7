"""Minutes are judged once, in order, when no more records can come; and a judgement can be recalled."""

import time
from pathlib import Path

import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.store import Location, Store
from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA, MOST_VERSIONS, OTHER_VERSIONS, Count, limited
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import SignalKind
from gamelake.serving.live_ops.signals.watch_tables import additions, recall
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.state_files import decode_table, encode_table

MINUTE = 60_000_000
START = 29_400_000
GAMES = ("archery", "bingo", "castle", "dragon", "empire")


def counts(*rows: Count) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in COUNTS_SCHEMA]
    return pa.table(dict(zip(COUNTS_SCHEMA.names, map(list, columns), strict=True)), schema=COUNTS_SCHEMA)


def a_count(minute: int, game: str = "kart", version: str = "1.0", events: int = 100, purchases: int = 10) -> Count:
    return Count(minute, game, version, events, 5, purchases, purchases * 1_000_000)


def end_of(minute: int) -> int:
    return (minute + 1) * MINUTE


def watching(patience: int = MINUTE) -> Watching:
    return Watching(Detector(), patience)


def test_a_minute_is_judged_when_the_slowest_partition_is_past_it() -> None:
    watch = watching()

    early = watch.judge([counts(a_count(START))], [{0: end_of(START) + 2 * MINUTE, 1: end_of(START) - 1}])
    late = watch.judge([], [{1: end_of(START) + MINUTE}])

    assert len(early.closed) == 0
    assert late.closed["minute"].to_pylist() == [START]


def test_a_partition_that_has_been_idle_for_minutes_is_not_waited_for() -> None:
    watch = watching()
    watch.judge([counts(a_count(START))], [{0: end_of(START), 1: end_of(START)}])

    judgement = watch.judge([], [{0: end_of(START) + 10 * MINUTE}])

    assert judgement.closed["minute"].to_pylist() == [START]


def test_parts_of_a_minute_from_several_batches_are_one_row() -> None:
    watch = watching()
    watch.judge([counts(a_count(START)), counts(a_count(START))], [{0: end_of(START)}])

    judgement = watch.judge([counts(a_count(START))], [{0: end_of(START) + 2 * MINUTE}])

    assert judgement.closed.to_pylist() == [a_count(START, events=300, purchases=30)._asdict() | {"errors": 15}]


def test_what_comes_after_its_minute_was_judged_is_late_and_counted_nowhere_else() -> None:
    watch = watching()
    watch.judge([counts(a_count(START))], [{0: end_of(START) + 2 * MINUTE}])

    judgement = watch.judge([counts(a_count(START, events=7))], [{0: end_of(START) + 9 * MINUTE}])

    assert (judgement.late, len(judgement.closed)) == (7, 0)


def test_a_few_events_from_long_ago_do_not_make_the_stream_begin_there() -> None:
    watch = watching()

    judgement = watch.judge(
        [counts(a_count(START - 4000, events=1), a_count(START), a_count(START + 1))], [{0: end_of(START) + 9 * MINUTE}]
    )

    assert judgement.closed["minute"].to_pylist() == [START, START + 1]
    assert judgement.late == 1


def test_a_detector_that_resumes_from_carried_state_judges_the_same() -> None:
    first = watching()
    first.judge([counts(a_count(START))], [{0: end_of(START)}])
    second = watching()

    second.go_on_from(decode_table(encode_table(first.carried())))

    newer = [{0: end_of(START) + 2 * MINUTE}]
    assert second.judge([counts(a_count(START))], newer) == first.judge([counts(a_count(START))], newer)


def test_names_of_versions_that_devices_make_up_are_counted_together() -> None:
    rows = [a_count(START, version=f"made-up-{number}", events=1) for number in range(500)]
    rows += [a_count(START, version="1.0", events=1000), a_count(START, game="yeti", version="2.0", events=1)]

    kept = limited(counts(*rows))

    kart = [row for row in kept.to_pylist() if row["game"] == "kart"]
    assert len(kart) == MOST_VERSIONS + 1
    assert sum(row["events"] for row in kart) == 1500
    assert {"1.0", OTHER_VERSIONS} <= {row["app_version"] for row in kart}
    assert [row["app_version"] for row in kept.to_pylist() if row["game"] == "yeti"] == ["2.0"]


def _a_minute(minute: int, broken: bool) -> list[Count]:
    return [a_count(minute, game, purchases=0 if broken and game == "castle" else 30) for game in GAMES]


def test_a_driver_that_starts_anew_recalls_what_lasts_and_what_is_usual(tmp_path: Path) -> None:
    location = Location(uri=tmp_path.as_uri())
    store, watch = Store(location), watching()
    # Of today, since nothing older than a month is recalled.
    first = int(time.time()) // 60 - 200
    with stream_tables(location) as tables:
        for batch, minute in enumerate(range(first, first + 120)):
            judged = watch.judge([counts(*_a_minute(minute, minute >= first + 100))], [{0: end_of(minute) + MINUTE}])
            for entry in additions(store, judged.closed, judged.changes):
                tables.append(entry, BatchTransaction("test", batch))

    again = Detector()
    recall(store, again)

    (lasting,) = again.lasting
    assert (lasting.kind, lasting.game) == (SignalKind.BOOKINGS_FALL, "castle")
    assert again.lasting == watch.detector.lasting
    assert sorted(again.ratios()) == sorted(watch.detector.ratios())
    # Purchases come back: the signal that was recalled ends, and no other begins.
    changes = [change for at in range(120, 140) for change in again.judge(first + at, _a_minute(first + at, False))]
    assert [change.signal_id for change in changes] == [lasting.signal_id]
    assert changes[0].ended is not None
