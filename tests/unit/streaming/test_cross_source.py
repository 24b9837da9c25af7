"""A stream knows the events of a concurrent stream, and commits only events that the other one has not committed."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS, events_folder
from gamelake.storage.data_files import DataFile, encode_parquet
from gamelake.storage.generations import Generation, Generations
from gamelake.storage.manifests import BatchManifest, EventsFile, EventsSection, Manifests, TableFiles
from gamelake.storage.store import Location, Store
from gamelake.streaming.cross_source import EVENTS_OF_FILES, ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.duplicates import WorkerMemory

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
        """Decide a batch of events; gives the file with their identities."""
        path = f"{events_folder(STREAM)}/{self._batch:012d}-identities"
        self._store.put(path, b"\0" * 16 * len(ids))
        sections = (EventsSection(partition=EVENTS_OF_FILES, start=0, events=len(ids), newest=written_at),)
        manifest = BatchManifest(
            stream=STREAM,
            query_id="q",
            generation=0,
            batch_id=self._batch,
            topic="t",
            topic_id="i",
            written_at="",
            offsets=(),
            tables=(silver(self._store, *ids),),
            dead_letters={},
            events=(EventsFile(path=path, sections=sections),),
        )
        Manifests(self._store, STREAM).settle(manifest)
        self._batch += 1
        return path


def silver(store: Store, *ids: str, game: str = "Archery") -> TableFiles:
    """A file of silver/events with these events."""
    rows = pa.table({"game_name": [game] * len(ids), "event_id": list(ids)})
    content, statistics = encode_parquet(rows, frozenset())
    path = f"{'-'.join((game, *ids))}.parquet"
    store.put(f"{SILVER_EVENTS}/{path}", content.to_pybytes())
    file = DataFile(path=path, size=content.size, rows=len(ids), partition={}, statistics=statistics)
    return TableFiles(table=SILVER_EVENTS, partition_by=(), schema="{}", files=(file,))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=f"file://{tmp_path}"))


def known(other: ConcurrentFilesStream) -> set[str]:
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
    return sum(len(WorkerMemory(0).events(EVENTS_OF_FILES, taken.files, store)) for taken in other.taken)


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
