"""Small files of identities are merged: a batch needs few of them, and no kill between two steps loses an identity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.known_events import ANY_TIME, Events, KnownEvents
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.manifests import BatchManifest, EventsFile, EventsSection, Manifests
from gamelake.model.naming import events_folder
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES, files_to_merge, merge, newest_of
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.plan import KnownFile
from tests.support.logged import logged
from tests.support.manifests import a_manifest
from tests.unit.properties import examples

STREAM, SEED = "ingest_files", "q"
START, HOUR, DAY = 1_800_000_000, 3_600, 86_400
OBJECTS = 0


def identities(numbers: Iterator[int] | range | list[int], seconds: int = ANY_TIME) -> Events:
    found = np.array(list(numbers), np.uint64)
    return Events.of(found, np.zeros(len(found), np.uint64), np.full(len(found), seconds, np.int64))


@dataclass
class TwoStreams:
    """The stream of files, which keeps a window, and the stream of records, which reads it."""

    store: Store
    small_files: int = 256
    now: int = START
    batch: int = 0
    # The identities of each decided batch, with the time of the batch.
    decided: list[tuple[int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin."""
        generation = Generation(
            stream=STREAM, number=0, query_id=SEED, topic="t", topic_id="i", first_batch=0, reason="", created_at=""
        )
        Generations(self.store, STREAM).add(generation)
        self.manifests = Manifests(self.store, STREAM)
        self.restart()

    def restart(self) -> None:
        """Start both drivers again."""
        self.window = DedupWindow(
            self.store,
            STREAM,
            DedupLimits(window=timedelta(days=14), events=10**9, small_files=self.small_files),
            lambda: self.now * 1_000_000,
        )
        self.window.resume(self.manifests)
        self.records = ConcurrentFilesStream(ConcurrentStream(self.store, STREAM), clock=lambda: self.now)
        self.records.refresh()

    def decide(self, ids: list[int]) -> BatchManifest:
        """Write the identities of a batch and what it merges, and decide it; the window does not take it yet."""
        name = f"{events_folder(STREAM)}/{self.batch:012d}-"
        merged = self.window.merged(self.batch)
        files = []
        for partition, at in ((OBJECTS, self.now), (EVENTS_OF_FILES, ANY_TIME)):
            path = f"{name}{partition}-{len(self.decided)}"
            self.store.put(path, identities(ids, at).encode())
            section = EventsSection(partition=partition, start=0, events=len(ids), newest=self.now)
            files.append(EventsFile(path=path, sections=(section,)))
        manifest = a_manifest(stream=STREAM, query_id=SEED, batch_id=self.batch, events=(*files, *merged))
        self.manifests.settle(manifest)
        self.decided.append((self.now, ids))
        self.batch += 1
        return manifest

    def settle(self, ids: list[int]) -> None:
        """Decide and commit a batch."""
        self.window.took(self.decide(ids))

    def known_files(self) -> list[KnownFile]:
        """What each task of the stream of records is given."""
        return [file for taken in self.records.taken for file in taken.files]

    def check(self) -> None:
        """A new worker of each stream knows each identity of the window."""
        self.records.refresh()
        of_window = [number for at, ids in self.decided if at >= self.now - 14 * DAY for number in ids]
        plan = self.window.plan(SEED, self.batch)
        known = plan.known.get(OBJECTS, ())
        objects = WorkerMemory().partition(SEED, plan.window_seconds, OBJECTS, known, self.store)
        for at, ids in self.decided:
            if at >= self.now - 14 * DAY:
                assert objects.have(identities(ids, at)).all()
        events = events_of(self.known_files(), self.store)
        assert events.have(identities(of_window)).all()


def events_of(files: Sequence[KnownFile], store: Store, memory: WorkerMemory | None = None) -> KnownEvents:
    """What a worker reads of the stream of files; one that has just started, if it has no memory."""
    return (memory or WorkerMemory()).partition(SEED, ANY_TIME, EVENTS_OF_FILES, files, store)


@pytest.fixture
def streams(tmp_path: Path) -> TwoStreams:
    return TwoStreams(Store(Location(uri=tmp_path.as_uri())))


def test_few_files_are_in_the_plans_of_both_streams_however_many_batches_the_window_has(streams: TwoStreams) -> None:
    batches, most = 1_000, 0
    for number in range(batches):
        streams.now = START + number * 14 * DAY // batches
        streams.settle([number])
        streams.records.refresh()
        plan = streams.window.plan(SEED, streams.batch)
        most = max(most, len(streams.known_files()), sum(map(len, plan.known.values())))

    assert most < 300
    streams.check()


def test_a_window_with_thousands_of_small_files_is_merged_batch_by_batch(tmp_path: Path) -> None:
    streams = TwoStreams(Store(Location(uri=tmp_path.as_uri())), small_files=10**9)
    for number in range(800):
        streams.now = START + number * 14 * DAY // 800
        streams.settle([number])
    streams.small_files = 64
    streams.restart()
    assert len(streams.known_files()) == 800

    for number in range(16):
        streams.settle([800 + number])
    streams.check()

    assert len(streams.known_files()) < 100


@pytest.mark.parametrize("age", [0, HOUR])
def test_a_task_that_was_planned_up_to_an_hour_before_a_merge_finds_the_files_of_its_plan(
    tmp_path: Path, age: int
) -> None:
    streams = TwoStreams(Store(Location(uri=tmp_path.as_uri())), small_files=4)
    for number in range(4):
        streams.settle([number])
    streams.records.refresh()
    planned = streams.known_files()

    for number in range(4, 8):
        streams.now += age // 4
        streams.settle([number])

    assert len(events_of(planned, streams.store)) == 4
    streams.now += 2 * HOUR
    streams.settle([8])
    assert not set(streams.store.paths(events_folder(STREAM))) & {file.path for file in planned}
    streams.check()


@examples(25)
@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.integers(0, 10**9), min_size=1, max_size=3),
            st.sampled_from([0, 60, HOUR // 2, 2 * HOUR, DAY, 5 * DAY]),
            st.sampled_from(["commit", "commit", "kill before the manifest", "kill before the commits", "restart"]),
        ),
        max_size=25,
    ),
    small_files=st.integers(1, 5),
)
def test_whenever_a_driver_is_killed_both_streams_know_each_identity_of_the_window(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[int], int, str]], small_files: int
) -> None:
    streams = TwoStreams(Store(Location(uri=tmp_path_factory.mktemp("lake").as_uri())), small_files)
    for ids, seconds, step in steps:
        streams.now += seconds
        if step == "kill before the manifest":
            streams.window.merged(streams.batch)
            streams.restart()
        manifest = streams.decide(ids)
        if step == "kill before the commits":
            streams.restart()
        streams.window.took(manifest)
        if step == "restart":
            streams.restart()
        streams.check()
    # No file stays that no plan needs: a start deletes those of killed attempts.
    streams.now += 40 * DAY
    streams.settle([1])
    streams.settle([2])
    streams.restart()
    assert {path.rsplit("/", 1)[1][:12] for path in streams.store.paths(events_folder(STREAM))} <= {
        f"{number:012d}" for number in range(streams.batch - 3, streams.batch)
    }


def test_files_that_were_merged_are_not_reported_as_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    streams = TwoStreams(Store(Location(uri=tmp_path.as_uri())), small_files=3)
    for number in range(30):
        streams.now += HOUR
        streams.settle([number])

    streams.restart()

    assert not logged(caplog, "dedup_files_missing")
    streams.check()


def a_file(store: Store, number: int, newest: int, events: int = 1) -> EventsFile:
    path = f"{events_folder(STREAM)}/{number:012d}-x"
    store.put(path, identities(range(number, number + events)).encode())
    section = EventsSection(partition=EVENTS_OF_FILES, start=0, events=events, newest=newest)
    return EventsFile(path=path, sections=(section,))


def test_a_file_that_is_missing_or_cut_off_is_not_merged_and_stays_in_the_plans(streams: TwoStreams) -> None:
    store = streams.store
    files = [a_file(store, number, START, events=2) for number in range(4)]
    store.delete(files[1].path)
    store.put(files[2].path, b"cut off")

    merged = merge(store, events_folder(STREAM), 9, files, START)

    assert merged is not None
    assert merged.replaces == (files[0].path, files[3].path)
    assert merged.sections[0].events == 4
    assert merge(store, events_folder(STREAM), 9, files[:2], START) is None


def test_files_of_one_part_of_the_window_are_merged_and_large_ones_never(streams: TwoStreams) -> None:
    store, window = streams.store, 16 * DAY
    old = [a_file(store, number, 100 * DAY + number) for number in range(3)]
    new = [a_file(store, number, 101 * DAY + number) for number in range(10, 14)]
    large = a_file(store, 20, 101 * DAY, events=65_536)

    chosen = files_to_merge([*old, large, *new], window, most=6)

    assert chosen == new
    assert max(map(newest_of, chosen)) - min(map(newest_of, chosen)) < DAY
    assert not files_to_merge([*old, large, *new], window, most=7)


def test_a_worker_that_reads_a_merged_file_keeps_each_identity_once(streams: TwoStreams) -> None:
    files = [a_file(streams.store, 100 * number, START, events=100) for number in range(8)]
    memory = WorkerMemory()

    def read(*some: EventsFile) -> int:
        known = [KnownFile(file.path, 0, file.sections[0].events, ANY_TIME) for file in some]
        return len(events_of(known, streams.store, memory))

    assert read(*files) == 800
    merged = merge(streams.store, events_folder(STREAM), 9, files, START)
    assert merged is not None

    assert read(merged) == 800
