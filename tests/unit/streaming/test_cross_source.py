"""A stream knows the events of a concurrent stream, and commits only events that the other one has not committed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gamelake.delta.table_files import TableFiles
from gamelake.layers.known_events import ANY_TIME, Events
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.manifests import EventsFile, EventsSection, Manifests
from gamelake.ledger.replay_notices import ReplayNotices, replayed_events_folder
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS, events_folder
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.common_events import have_common_events
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream, ReplayedEvents
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES, write_identities
from gamelake.streaming.dedup.window import LONGEST_BATCH_SECONDS
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.plan import KnownFile
from tests.support.manifests import a_manifest, files_of

STREAM = "ingest_files"
NOW = 1_800_000_000
DAY = 86_400


class Files:
    """The other stream."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch = 0
        generation = Generation(
            stream=STREAM, number=0, query_id="q", topic="t", topic_id="i", first_batch=0, reason="", created_at=""
        )
        Generations(store, STREAM).add(generation)

    def settle(self, *ids: str, written_at: int = NOW) -> str:
        """Decide a batch of events. Return the file with their identities."""
        path = f"{events_folder(STREAM)}/{self._batch:012d}-identities"
        numbers = np.arange(len(ids), dtype=np.uint64)
        identities = Events.of(numbers, np.full(len(ids), self._batch, np.uint64), np.full(len(ids), ANY_TIME))
        self._store.put(path, identities.encode())
        sections = (EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(ids), newest=written_at),)
        manifest = a_manifest(
            stream=STREAM,
            batch_id=self._batch,
            tables=(silver(self._store, *ids),),
            events=(EventsFile(path=path, sections=sections),),
        )
        Manifests(self._store, STREAM).settle(manifest)
        self._batch += 1
        return path


def silver(store: Store, *ids: str | None, game: str = "Archery") -> TableFiles:
    """A file of silver/events with these events."""
    rows = pa.table({"game_name": [game] * len(ids), "event_id": pa.array(ids, pa.string())})
    return files_of(store, SILVER_EVENTS, rows)


def known(other: ConcurrentFilesStream | ReplayedEvents) -> set[str]:
    return {file.path for taken in other.taken for file in taken.files}


def test_events_ingested_before_and_after_the_start_are_known(store: Store) -> None:
    files = Files(store)
    paths = {files.settle("a"), files.settle("b")}
    other = ConcurrentFilesStream(ConcurrentStream(store, STREAM))

    other.refresh()
    assert known(other) == paths
    paths.add(files.settle("c"))
    other.refresh()
    assert known(other) == paths


def test_events_committed_during_a_batch_are_known_to_the_next_batch(store: Store) -> None:
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM))
    other.refresh()
    path = files.settle("a")

    assert other.is_clear((silver(store, "b"),))
    other.refresh()

    assert known(other) == {path}


def test_a_batch_with_an_event_that_was_committed_meanwhile_is_not_clear(store: Store) -> None:
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM))
    other.refresh()
    path = files.settle("a", "b")

    assert not other.is_clear((silver(store, "b", "c"),))
    other.refresh()

    assert known(other) == {path}
    assert other.is_clear((silver(store, "c"),))


def read_by_a_new_worker(store: Store, other: ConcurrentFilesStream) -> int:
    """The number of identities that a Python worker reads that has just started."""
    memory = WorkerMemory()
    sources = (memory.partition(each.seed, ANY_TIME, EVENTS_OF_FILES, each.files, store) for each in other.taken)
    return sum(map(len, sources))


def test_files_that_have_left_the_window_are_no_longer_read(store: Store) -> None:
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM), clock=lambda: NOW)
    expired = [files.settle(f"{n}", written_at=NOW - 14 * DAY + n) for n in range(3)]
    left = files.settle("a", written_at=NOW - DAY // 2)
    other.refresh()
    assert read_by_a_new_worker(store, other) == 4

    for path in expired:
        store.delete(path)
    assert read_by_a_new_worker(store, other) == 1
    other.refresh()

    assert known(other) == {left}
    assert read_by_a_new_worker(store, other) == 1


def test_files_that_leave_the_window_by_the_last_batch_may_be_missing(store: Store) -> None:
    """After a pause several files leave the window at once, and a task may read them while they are deleted."""
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM), clock=lambda: NOW)
    expired = [files.settle(f"{age}", written_at=NOW - age * DAY) for age in (26, 18)]
    files.settle("a")
    other.refresh()

    for path in expired:
        store.delete(path)

    assert read_by_a_new_worker(store, other) == 1


@pytest.mark.parametrize("age", [60, DAY // 2, 5 * DAY])
def test_a_missing_file_that_can_not_have_left_the_window_stops_the_batch(store: Store, age: int) -> None:
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM), clock=lambda: NOW)
    files.settle("oldest", written_at=NOW - 14 * DAY)
    lost = files.settle("lost", written_at=NOW - age)
    files.settle("newest")
    other.refresh()
    store.delete(lost)
    other.refresh()

    with pytest.raises(StoreError, match="is gone or cut off"):
        read_by_a_new_worker(store, other)


def test_the_same_id_of_another_game_is_another_event(store: Store) -> None:
    files, other = Files(store), ConcurrentFilesStream(ConcurrentStream(store, STREAM))
    other.refresh()
    files.settle("a")

    assert other.is_clear((silver(store, "a", game="Bingo"),))


def test_a_stream_that_was_never_started_blocks_no_other(store: Store) -> None:
    other = ConcurrentFilesStream(ConcurrentStream(store, STREAM))
    other.refresh()

    assert other.is_clear((silver(store, "a"),))
    assert known(other) == set()


def test_a_worker_keeps_at_most_twice_the_identities_of_the_window(store: Store) -> None:
    window, in_file = 14, 5_000
    memory, most = WorkerMemory(most_in_memory=20_000), 0
    live: list[KnownFile] = []
    for day in range(5 * window):
        identity = np.arange(day * in_file, (day + 1) * in_file, dtype=np.uint64)
        found = Events.of(identity, identity % 7, np.full(in_file, ANY_TIME, np.int64))
        store.put(f"{day}", found.encode())
        live = [*live, KnownFile(f"{day}", 0, in_file, ANY_TIME)][-window:]

        known = memory.partition("q", ANY_TIME, EVENTS_OF_FILES, live, store)

        most = max(most, len(known))
        first = (day - len(live) + 1) * in_file
        of_window = np.arange(first, first + len(live) * in_file, dtype=np.uint64)
        assert known.have(Events.of(of_window, of_window % 7, np.full(len(of_window), ANY_TIME, np.int64))).all()
    assert most <= 2 * window * in_file + 20_000


@pytest.mark.parametrize(
    ("ids", "others", "common"),
    [
        (["a", "b"], ["b", "c"], True),
        (["a"], ["c"], False),
        (["", "a"], ["", "b"], False),
        ([None, "a"], [None], False),
        (["0D6B1F1E-4B0E-4C3A-9D3C-0F2F5A3C7B11"], ["0d6b1f1e-4b0e-4c3a-9d3c-0f2f5a3c7b11"], True),
        ([], ["a"], False),
    ],
)
def test_events_without_an_id_are_in_common_with_none(
    store: Store, ids: list[str | None], others: list[str | None], common: bool
) -> None:
    some = [silver(store, *ids)]

    assert have_common_events(store, some, [silver(store, *others)]) is common
    assert not have_common_events(store, some, [silver(store, *others, game="Bingo")])


def test_events_of_a_replay_are_known_until_they_are_forgotten_and_then_deleted(store: Store) -> None:
    now, notices = [NOW], ReplayNotices(store)
    replays = ReplayedEvents(store, clock=lambda: now[0])
    folder = replayed_events_folder(7)
    events = Events.of(np.zeros(2, np.uint64), np.zeros(2, np.uint64), np.full(2, ANY_TIME))
    file = write_identities(store, folder, 7, {EVENTS_OF_FILES: (events, NOW)})
    write_identities(store, folder, 7, {EVENTS_OF_FILES: (events, NOW)})  # of an attempt that failed
    replays.refresh()
    assert known(replays) == set()

    notices.put(7, [file], NOW + DAY)
    replays.refresh()
    assert known(replays) == {file.path}

    now[0] += DAY + 1
    replays.refresh()
    assert known(replays) == set()
    assert len(store.paths(folder)) == 2, "a task of the running batch may still read them"

    now[0] += LONGEST_BATCH_SECONDS
    replays.refresh()
    replays.refresh()
    assert (store.paths(folder), notices.numbers()) == ([], [])


def test_a_batch_lists_the_notices_of_replays_once_and_reads_each_once(tmp_path: Path) -> None:
    store = CountingStore(Location(uri=f"file://{tmp_path}"))
    replays = ReplayedEvents(store, clock=lambda: NOW)
    for number in (3, 5):
        ReplayNotices(store).put(number, [], NOW + DAY)
    replays.refresh()
    store.requests.clear()

    replays.refresh()
    assert store.requests == ["paths"]


class CountingStore(Store):
    """Counts what a stream asks of it."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.requests: list[str] = []

    def get(self, path: str) -> bytes | None:
        self.requests.append("get")
        return super().get(path)

    def paths(self, prefix: str) -> list[str]:
        self.requests.append("paths")
        return super().paths(prefix)
