"""Duplicates in one task and from batch to batch: silver has each event once, and no event is lost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.ledger.manifests import BatchManifest, EventsFile, EventsSection, Manifests
from gamelake.model.errors import SplitPartitionError, StoreError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, events_folder
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.dedup.worker_memory import worker_memory
from gamelake.streaming.driver.decision import check_one_task_per_partition
from gamelake.streaming.plan import ChunkLimits, DedupPlan, TaskReport
from tests.support.logged import logged
from tests.support.manifests import a_manifest, offsets_of
from tests.unit.properties import examples
from tests.unit.streaming.tasks import (
    KART_TABLE,
    NOON,
    YETI_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    TaskOutcome,
    an_event,
    framed,
    game_event_schema,
    numbered,
    schema_id,
)

STREAM, SEED = "ingest", "query"


@dataclass
class Deduplicated:
    """A lakehouse whose batches are settled one after the other, as the driver does it."""

    lakehouse: TaskLakehouse
    limits: DedupLimits = field(default_factory=DedupLimits)
    taken: int = 0
    driver_time: datetime | None = None

    def __post_init__(self) -> None:
        """Open the window."""
        self.restart()

    def restart(self) -> None:
        """Forget all that a driver has in memory; a `driver_time` stands still."""
        fixed = self.driver_time
        clock = None if fixed is None else lambda: round(fixed.timestamp() * 1_000_000)
        self.window = DedupWindow(self.lakehouse.store, STREAM, self.limits, clock)
        self.window.resume(Manifests(self.lakehouse.store, STREAM))

    def attempt(self, records: Sequence[KafkaTaskRecord], batch_records: int = 1_000, **plan: object) -> TaskOutcome:
        """Run a batch that nothing comes of."""
        return self.lakehouse.run(numbered(records), batch_records=batch_records, dedup=self.plan(), **plan)

    def plan(self) -> DedupPlan:
        """The plan of the next batch."""
        return self.window.plan(SEED, self.taken)

    def batch(self, records: Sequence[KafkaTaskRecord], batch_records: int = 1_000, **plan: object) -> TaskOutcome:
        """Run a batch and settle it."""
        outcome = self.attempt(records, batch_records, **plan)
        manifest = manifest_of(self.taken, [report.events for report in outcome.reports if report.events])
        self.window.took(Manifests(self.lakehouse.store, STREAM).settle(manifest))
        self.taken += 1
        return outcome

    @property
    def files(self) -> list[str]:
        return self.lakehouse.store.paths(events_folder(STREAM))


def manifest_of(batch_id: int, events: Sequence[EventsFile]) -> BatchManifest:
    return a_manifest(stream=STREAM, query_id=SEED, batch_id=batch_id, events=tuple(events))


@pytest.fixture
def lake(tmp_path: Path) -> Deduplicated:
    return Deduplicated(TaskLakehouse(tmp_path))


def sent(event_id: str | None, minutes: float = 0, **changes: str | None) -> KafkaTaskRecord:
    """Return an event that Kafka received some minutes after noon."""
    record = KafkaTaskRecord(value=framed(an_event(eventId=event_id, **changes), game_event_schema(1), schema_id(1)))
    return replace(record, timestamp=NOON + timedelta(minutes=minutes))


def ids(outcome: TaskOutcome, table: str = SILVER_EVENTS) -> list[str]:
    return [row["event_id"] for row in outcome.rows(table)]


def duplicates(outcome: TaskOutcome) -> Counter[str]:
    return sum((Counter(report.duplicates) for report in outcome.reports), Counter[str]())


def test_of_two_in_one_batch_the_first_is_a_row_and_the_other_is_in_bronze_only(lake: Deduplicated) -> None:
    outcome = lake.batch([sent("a"), sent("b"), sent("a", minutes=1)])

    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0, 1]
    assert ids(outcome) == ["a", "b"]
    assert outcome.count(BRONZE_EVENTS) == 3
    assert duplicates(outcome) == {"kart_rumble": 1}
    assert not outcome.dead_letters


@pytest.mark.parametrize("batch_records", [1, 2, 10])
def test_duplicates_are_found_across_the_chunks_of_a_task(lake: Deduplicated, batch_records: int) -> None:
    records = [sent(str(number % 5)) for number in range(20)]

    outcome = lake.batch(records, batch_records=batch_records, chunk=ChunkLimits(records=3))

    assert ids(outcome) == ["0", "1", "2", "3", "4"]
    assert duplicates(outcome) == {"kart_rumble": 15}


def test_duplicates_are_found_across_batches_and_restarts(lake: Deduplicated) -> None:
    lake.batch([sent("a")])
    lake.batch([sent("b")])
    lake.restart()

    outcome = lake.batch([sent("a", minutes=9), sent("b", minutes=9), sent("c", minutes=9)])

    assert ids(outcome) == ["c"]


def test_after_the_window_an_event_is_a_row_again_and_a_duplicate_does_not_extend_the_window(
    lake: Deduplicated,
) -> None:
    outcomes = [lake.batch([sent("a", minutes=minute)]) for minute in (0, 6, 10, 10.1, 16, 20.1, 20.2)]

    assert [ids(outcome) for outcome in outcomes] == [["a"], [], [], ["a"], [], [], ["a"]]


def test_the_window_counts_within_a_batch_too(lake: Deduplicated) -> None:
    outcome = lake.batch([sent("a", minutes=minute) for minute in (0, 6, 10, 10.1, 16, 20.1, 20.2)])

    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0, 3, 6]


def test_events_without_an_id_are_never_duplicates(lake: Deduplicated) -> None:
    for _ in range(2):
        outcome = lake.batch([sent(None), sent(None), sent("")])

        assert outcome.count(KART_TABLE) == 3


def test_one_id_in_two_games_is_two_events(lake: Deduplicated) -> None:
    lake.batch([sent("a")])

    outcome = lake.batch([sent("a", gameName="Yeti Ski"), sent("a")])

    assert (outcome.count(YETI_TABLE), outcome.count(KART_TABLE)) == (1, 0)


def test_a_dead_letter_makes_no_later_event_a_duplicate(lake: Deduplicated) -> None:
    lake.batch([sent("a", eventTime=None), sent("b", gameName="Unknown")])

    outcome = lake.batch([sent("a"), sent("b")])

    assert ids(outcome) == ["a", "b"]


def test_events_of_a_failed_attempt_are_not_known(lake: Deduplicated) -> None:
    for _ in range(3):
        assert ids(lake.attempt([sent("a")])) == ["a"]
    lake.restart()
    assert ids(lake.attempt([sent("a")])) == ["a"]

    assert ids(lake.batch([sent("a")])) == ["a"]
    assert ids(lake.batch([sent("a")])) == []


def test_files_of_failed_attempts_are_deleted_once_their_batch_is_committed(lake: Deduplicated) -> None:
    lake.attempt([sent("a")])
    lake.attempt([sent("a")])
    lake.restart()
    assert len(lake.files) == 2

    lake.batch([sent("a")])
    lake.restart()

    assert len(lake.files) == 1


def test_files_are_removed_once_all_of_their_events_are_older_than_their_partitions_window(lake: Deduplicated) -> None:
    for minute in range(40):
        lake.batch([sent(f"e{minute}", minutes=minute)])

    assert len(lake.files) == 11


def test_files_that_could_not_be_deleted_go_first_with_the_next_batch(
    lake: Deduplicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest file says how long the window is: nothing younger goes before it."""
    for minute in range(8):
        lake.batch([sent(f"e{minute}", minutes=minute)])
    before = lake.files

    with monkeypatch.context() as patched:
        patched.setattr(Store, "delete", fails)
        lake.batch([sent("after a pause", minutes=14)])
    assert set(before) < set(lake.files)
    deleted: list[str] = []
    monkeypatch.setattr(Store, "delete", lambda _, path: deleted.append(path))
    lake.batch([sent("next", minutes=15)])

    assert deleted == before[:5]


def test_the_files_of_a_batch_are_deleted_at_once(tmp_path: Path) -> None:
    """A batch has one of each task, and the next one waits until they are deleted."""
    together = Barrier(8)

    class SlowStore(Store):
        def delete(self, path: str) -> None:
            # Raises an error unless all are here within the time.
            together.wait(60)
            super().delete(path)

    store = SlowStore(Location(uri=tmp_path.as_uri()))
    window = DedupWindow(store, STREAM, DedupLimits())
    for batch, files in ((0, 8), (1, 1)):
        paths = [f"{events_folder(STREAM)}/{batch:012d}-{number}" for number in range(files)]
        for path in paths:
            store.put(path, b"")
        section = EventsSection(partition=0, start=0, events=0, newest=batch * 3_600)
        window.took(manifest_of(batch, [EventsFile(path=path, sections=(section,)) for path in paths]))

    assert store.paths(events_folder(STREAM)) == [f"{events_folder(STREAM)}/000000000001-0"]


def fails(store: Store, path: str) -> None:
    raise OSError(f"{store.location.uri} does not respond, {path} stays")


def test_a_quiet_partition_keeps_its_own_window(lake: Deduplicated) -> None:
    quiet = replace(sent("a"), partition=1)
    lake.batch([quiet])
    for minute in range(40):
        lake.batch([sent(f"e{minute}", minutes=minute)])

    outcome = lake.lakehouse.run([quiet], dedup=lake.plan())

    assert outcome.count(SILVER_EVENTS) == 0


def test_a_clock_that_is_ahead_does_not_move_the_window(lake: Deduplicated) -> None:
    lake.batch([sent("a")])
    lake.batch([sent("b", minutes=60 * 24 * 365 * 50)])

    assert all(file.newest < 2**31 for files in lake.plan().known.values() for file in files)


@pytest.mark.parametrize("behind", [5, 60])
def test_duplicates_are_found_by_a_driver_whose_clock_is_behind(lake: Deduplicated, behind: int) -> None:
    for minute, expected in ((0, ["a"]), (1, []), (9, [])):
        lake.driver_time = NOON + timedelta(minutes=minute - behind)
        lake.restart()
        assert ids(lake.batch([sent("a", minutes=minute)])) == expected


def test_a_driver_whose_clock_went_back_knows_the_events_from_before_and_after(lake: Deduplicated) -> None:
    lake.driver_time = NOON + timedelta(minutes=1)
    lake.restart()
    lake.batch([sent("a")])

    lake.driver_time = NOON - timedelta(minutes=20)
    lake.restart()
    outcomes = [lake.batch([sent("a", minutes=1), sent("b", minutes=1)]), lake.batch([sent("b", minutes=2)])]

    assert [ids(outcome) for outcome in outcomes] == [["b"], []]


def test_at_most_the_allowed_number_of_events_is_kept_and_the_newest_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Deduplicated(TaskLakehouse(tmp_path), DedupLimits(events=5))
    for number in range(4):
        lake.batch([sent(f"{number}-{each}") for each in range(2)])
    found = [file.path for file in lake.plan().known[0]]

    assert [int(path.rsplit("/", 1)[1][:12]) for path in found] == [3, 2]
    (full,) = logged(caplog, "dedup_window_full")
    assert lake.window.left_out > 0
    assert full["events"] == 5
    assert "GAMELAKE_DEDUP_MAX_EVENTS" in str(full["action"])


def test_events_beyond_the_memory_of_a_worker_are_found_in_scratch_files(tmp_path: Path) -> None:
    lake = Deduplicated(TaskLakehouse(tmp_path), DedupLimits(in_memory=3))
    for number in range(4):
        lake.batch([sent(f"{number}-{each}", minutes=number) for each in range(5)])
    again = [sent(f"{number}-{each}", minutes=4) for number in range(4) for each in range(5)]

    assert ids(lake.attempt([*again, sent("new", minutes=4)])) == ["new"]
    memory, plan = worker_memory(lake.lakehouse.store, 3, {SEED}), lake.plan()
    assert memory.in_memory <= 3
    known = memory.partition(SEED, plan.window_seconds, 0, plan.known[0], lake.lakehouse.store)
    assert known.spilled >= 17


def test_a_missing_file_stops_the_batch_and_the_next_start_continues_without_it(
    lake: Deduplicated, caplog: pytest.LogCaptureFixture
) -> None:
    events = (EventsFile(path=f"{events_folder(STREAM)}/{0:012d}-x", sections=(a_section(),)),)
    kept = EventsFile(path=f"{events_folder(STREAM)}/{0:012d}-y", sections=(a_section(),))
    lake.lakehouse.store.put(kept.path, bytes(16))
    lake.window.took(Manifests(lake.lakehouse.store, STREAM).settle(manifest_of(0, [*events, kept])))

    with pytest.raises(StoreError, match="is gone or cut off"):
        lake.attempt([sent("a")])

    lake.restart()
    assert ids(lake.attempt([sent("a")])) == ["a"]
    assert [(each["batch"], each["files"]) for each in logged(caplog, "dedup_files_missing")] == [(0, 1)]


def a_section() -> EventsSection:
    return EventsSection(partition=0, start=0, events=1, newest=int(NOON.timestamp()))


def test_a_partition_in_two_tasks_is_rejected() -> None:
    def report(task: str, partition: int) -> TaskReport:
        return TaskReport(task=task, files=(), offsets=(offsets_of(0, 0, partition),), dead_letters={})

    check_one_task_per_partition([report("a", 0), report("a", 0), report("b", 1)])
    with pytest.raises(SplitPartitionError, match="partition 1"):
        check_one_task_per_partition([report("a", 0), report("a", 1), report("b", 1)])


@examples(25)
@given(
    batches=st.lists(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 25)), max_size=12), max_size=6),
    restarts=st.sets(st.integers(0, 5)),
    chunk=st.integers(1, 12),
    in_memory=st.sampled_from([1, 4, 1_000]),
)
def test_in_any_order_of_records_silver_has_an_event_once_per_window(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[int, int]]],
    restarts: set[int],
    chunk: int,
    in_memory: int,
) -> None:
    lake = Deduplicated(TaskLakehouse(tmp_path_factory.mktemp("lakehouse")), DedupLimits(in_memory=in_memory))
    rows: dict[str, list[int]] = {}
    newest = 0
    for number, batch in enumerate(batches):
        # In any order in a batch, but none is before what earlier batches had.
        moments = [newest + minute for _, minute in batch]
        records = [sent(str(event), minutes=at) for (event, _), at in zip(batch, moments, strict=True)]
        lake.attempt(records, chunk=ChunkLimits(records=chunk))
        outcome = lake.batch(records, batch_records=3, chunk=ChunkLimits(records=chunk))
        if number in restarts:
            lake.restart()

        expected = []
        for offset, ((event, _), at) in enumerate(zip(batch, moments, strict=True)):
            if all(abs(at - other) > 10 for other in rows.get(str(event), [])):
                rows.setdefault(str(event), []).append(at)
                expected.append(offset)
        newest = max([newest, *moments])
        assert [row["kafka_offset"] for row in outcome.rows(SILVER_EVENTS)] == expected
        assert outcome.count(BRONZE_EVENTS) == len(batch) == len(expected) + sum(duplicates(outcome).values())
