"""What a worker keeps of ingested events: all sources within one limit, and none that no batch needs any more."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gamelake.layers.known_events import ANY_TIME, Events
from gamelake.model.errors import StoreError
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES
from gamelake.streaming.dedup.worker_memory import WorkerMemory, worker_memory
from gamelake.streaming.plan import DedupPlan, KnownFile, OtherSourceEvents
from tests.unit.streaming.tasks import NOON, TaskLakehouse, TaskOutcome, a_record

WINDOW, FILES, REPLAYS = "window", "files", "replays"
IN_FILE, LIMIT = 500, 600
NOW = int(NOON.timestamp())


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    """A lakehouse with one file of identities of each source."""
    lakehouse = TaskLakehouse(tmp_path)
    for seed, at in ((WINDOW, NOW), (FILES, ANY_TIME), (REPLAYS, ANY_TIME)):
        lakehouse.store.put(seed, some_events(at).encode())
    return lakehouse


def some_events(at: int = ANY_TIME) -> Events:
    numbers = np.random.default_rng(0).integers(0, 2**63, (2, IN_FILE), np.uint64)
    return Events.of(numbers[0], numbers[1] >> np.uint64(32), np.full(IN_FILE, at, np.int64))


def a_file(seed: str, at: int = ANY_TIME) -> tuple[KnownFile, ...]:
    return (KnownFile(seed, 0, IN_FILE, at),)


def run_a_task(lakehouse: TaskLakehouse, *others: str) -> TaskOutcome:
    """Run a task of a stream with a window, and with the identities of others."""
    dedup = DedupPlan(
        folder="events", batch_id=0, seed=WINDOW, window_seconds=600, known={0: a_file(WINDOW, NOW)}, in_memory=LIMIT
    )
    taken = tuple(OtherSourceEvents(seed, a_file(seed)) for seed in others)
    return lakehouse.run([a_record()], dedup=dedup, other_sources=taken)


def memory_of(store: Store, *seeds: str) -> WorkerMemory:
    """What this process has of a lakehouse, for a batch that names some seeds."""
    return worker_memory(store, LIMIT, {WINDOW, *seeds})


def events_of(memory: WorkerMemory, seed: str, store: Store) -> int:
    return len(memory.partition(seed, ANY_TIME, EVENTS_OF_FILES, a_file(seed), store))


def test_one_limit_holds_for_the_window_the_other_streams_and_the_replays_together(lakehouse: TaskLakehouse) -> None:
    run_a_task(lakehouse, FILES, REPLAYS)

    memory = memory_of(lakehouse.store, FILES, REPLAYS)
    assert 0 < memory.in_memory <= LIMIT
    for seed in (FILES, REPLAYS):
        lakehouse.store.delete(seed)
        assert events_of(memory, seed, lakehouse.store) == IN_FILE, "what is not in memory is in scratch files"


def test_silver_is_within_the_same_limit_and_leaves_room_when_others_need_it(lakehouse: TaskLakehouse) -> None:
    memory = memory_of(lakehouse.store, FILES)
    first = memory.data_file(FILES, "a", iter([some_events()]))
    second = memory.data_file(FILES, "b", iter([some_events()]))
    assert [known.in_memory for known in (*first, *second)] == [IN_FILE, 0]

    assert events_of(memory, FILES, lakehouse.store) == IN_FILE

    assert memory.in_memory == IN_FILE
    assert all(known.have(some_events()).all() for known in (*first, *second))


def test_the_identities_of_expired_replays_are_released(lakehouse: TaskLakehouse) -> None:
    run_a_task(lakehouse, REPLAYS)
    assert events_of(memory_of(lakehouse.store, REPLAYS), REPLAYS, lakehouse.store) == IN_FILE

    run_a_task(lakehouse)

    lakehouse.store.delete(REPLAYS)
    with pytest.raises(StoreError, match="is gone or cut off"):
        events_of(memory_of(lakehouse.store, REPLAYS), REPLAYS, lakehouse.store)


def test_a_data_file_that_breaks_off_is_not_kept_and_takes_no_room(tmp_path: Path) -> None:
    memory = memory_of(Store(Location(uri=tmp_path.as_uri())))

    def broken() -> Iterator[Events]:
        yield some_events()
        raise StoreError("gone")

    with pytest.raises(StoreError, match="gone"):
        memory.data_file(FILES, "a", broken())

    assert memory.in_memory == 0
    assert sum(map(len, memory.data_file(FILES, "a", iter([some_events(), some_events()])))) == 2 * IN_FILE


def test_files_that_silver_no_longer_has_leave_the_memory(tmp_path: Path) -> None:
    memory = memory_of(Store(Location(uri=tmp_path.as_uri())))
    memory.data_file(FILES, "a", iter([some_events()]))

    memory.keep_data_files({"b"})

    assert memory.in_memory == 0
    with pytest.raises(StoreError, match="read again"):
        memory.data_file(FILES, "a", map(_fails, "a"))


def _fails(_path: str) -> Events:
    raise StoreError("read again")
