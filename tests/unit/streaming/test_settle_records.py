"""Two streams decide their batches in one order: a stream that stalls or dies at any step doubles no event."""

from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.generations import Generation
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.settle_records import CLEAN_UP_EVERY, KEPT_RECORDS, SettleRecords
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SETTLE_RECORDS, SILVER_EVENTS, checkpoint_path
from gamelake.objects.store import Store
from gamelake.streaming.dedup.cross_source import ConcurrentStream
from gamelake.streaming.driver import runner
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.stream import Stream
from tests.support.interrupted_store import InterruptedStore
from tests.support.manifests import files_of, offsets_of
from tests.unit.streaming.streams import TOPIC, TOPIC_ID, FailingStore, StandingTopic, location_of, log_batch

KAFKA, FILES = "ingest_events", "ingest_files"
COLUMNS = pa.schema([("game_name", pa.string()), ("event_id", pa.string())])


class EventsDecider:
    """Decides batches of one event id per offset: those that no manifest of either stream has become rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = 0

    def decide(self, records: list[str], planned: object, plan: object) -> Decision:
        """Write the new events into a file of silver/events."""
        del planned, plan
        self.calls += 1
        new = sorted(set(records) - set(ids_of(self._store, KAFKA)) - set(ids_of(self._store, FILES)))
        tables = (silver(self._store, new),) if new else ()
        return Decision((offsets_of(0, len(records) - 1),), tables, {}, {"archery": len(records) - len(new)}, ())

    def learn(self, columns: object) -> bool:
        del columns
        return False


class Driver:
    """A driver of one stream; the other stream writes the same tables."""

    def __init__(self, folder: Path, name: str, other: str, store: Store | None = None) -> None:
        self._folder = folder
        store = store or Store(location_of(folder))
        self.stream = Stream(store, name, TOPIC)
        self._tables = stream_tables(location_of(folder))
        finish_last_batch(self.stream, self._tables)
        self._generation = self.stream.open(TOPIC_ID)
        source = OpenStream(self.stream, self._generation, self._tables, cast("Any", StandingTopic()))
        self.decider = EventsDecider(Store(location_of(folder)))
        breaker = FloodBreaker(FloodLimit(1, 1))
        self.body = FanOut(
            source, cast("Any", self.decider), breaker, Failpoints(), order=ConcurrentStream(store, other)
        )

    def take(self, batch: int, *ids: str) -> None:
        """Take a batch, which has its plan in the checkpoint."""
        log_batch(self._folder, self._generation, batch, {0: len(ids)})
        self.body(cast("Any", list(ids)), batch)


def silver(store: Store, ids: list[str]) -> TableFiles:
    """A file of silver/events with these events."""
    return files_of(store, SILVER_EVENTS, pa.table({"game_name": ["Archery"] * len(ids), "event_id": ids}, COLUMNS))


def ids_of(store: Store, stream: str) -> list[str]:
    """The events that a stream's manifests have put into silver."""
    manifests = Manifests(store, stream)
    entries = [entry for each in manifests.read_many(manifests.batches()) for entry in each.tables]
    contents = [store.get(f"{entry.table}/{file.path}") or b"" for entry in entries for file in entry.files]
    return [event for each in contents for event in pq.read_table(pa.BufferReader(each))["event_id"].to_pylist()]


def rows(folder: Path) -> Counter[str]:
    table = open_table(location_of(folder), SILVER_EVENTS)
    return Counter(pa.table(table.to_pyarrow_table()).column("event_id").to_pylist())


@pytest.mark.parametrize("batches", [1, 2, KEPT_RECORDS + CLEAN_UP_EVERY + 2])
@pytest.mark.parametrize(("stalling", "other"), [(KAFKA, FILES), (FILES, KAFKA)])
def test_a_stream_that_stalls_at_any_step_doubles_no_event(
    tmp_path: Path, stalling: str, other: str, batches: int
) -> None:
    """While it stalls, the other one decides the same event, and further batches."""
    for at in count(1):
        folder = tmp_path / str(at)
        second = Driver(folder, other, stalling)
        Driver(folder, stalling, other).take(0, "before")
        second.take(0, "first")

        def meanwhile(second: Driver = second) -> None:
            for batch in range(1, batches + 1):
                second.take(batch, "both" if batch == 1 else f"other {batch}", f"more {batch}")

        store = InterruptedStore(location_of(folder), meanwhile)
        first = Driver(folder, stalling, other, store)
        store.interrupt(at)
        first.take(1, "both", "mine")
        if not store.stalled:
            break
        expected = ["before", "first", "both", "mine", *(f"more {n}" for n in range(1, batches + 1))]
        assert rows(folder) == Counter([*expected, *(f"other {n}" for n in range(2, batches + 1))]), at
    assert at > 10


def test_a_batch_whose_number_another_stream_takes_at_any_step_is_decided_again_only_if_they_have_an_event_in_common(
    tmp_path: Path,
) -> None:
    for at in count(1):
        folder = tmp_path / str(at)
        second = Driver(folder, FILES, KAFKA)
        Driver(folder, KAFKA, FILES).take(0, "before")
        second.take(0, "first")
        store = InterruptedStore(location_of(folder), partial(second.take, 1, "other"))
        first = Driver(folder, KAFKA, FILES, store)
        store.interrupt(at)

        first.take(1, "mine")

        if not store.stalled:
            break
        assert rows(folder) == Counter(["before", "first", "other", "mine"]), at
        assert first.decider.calls == 1, at
    assert at > 6


@pytest.mark.parametrize(("killed", "other"), [(KAFKA, FILES), (FILES, KAFKA)])
def test_a_stream_that_is_killed_before_any_write_doubles_and_loses_no_event(
    tmp_path: Path, killed: str, other: str
) -> None:
    for writes in count():
        folder = tmp_path / str(writes)
        second = Driver(folder, other, killed)
        Driver(folder, killed, other).take(0, "before")
        second.take(0, "first")
        store = FailingStore(location_of(folder), 1_000)
        first = Driver(folder, killed, other, store)
        store.die_after(writes)
        try:
            first.take(1, "both", "mine")
            alive = True
        except ConnectionError:
            alive = False
        second.take(1, "both", "other")
        Driver(folder, killed, other).take(1, "both", "mine")
        Driver(folder, other, killed).take(2, "both", "last")

        assert rows(folder) == Counter(["before", "first", "both", "mine", "other", "last"]), writes
        if alive:
            break
    assert writes > 1


def test_a_decision_whose_driver_was_killed_before_its_manifest_is_completed_by_the_other_stream(
    tmp_path: Path,
) -> None:
    first, second = Driver(tmp_path, KAFKA, FILES), Driver(tmp_path, FILES, KAFKA)
    first.take(0, "before")
    store = Store(location_of(tmp_path))
    records = SettleRecords(store)
    records.follow()
    standing = Manifests(store, KAFKA).read(0)
    assert standing is not None
    decided = msgspec.structs.replace(standing, batch_id=1, tables=(silver(store, ["both"]),))
    assert records.add(decided)

    second.take(0, "both", "other")

    assert Manifests(store, KAFKA).read(1) == decided
    Driver(tmp_path, KAFKA, FILES)
    assert rows(tmp_path) == Counter(["before", "both", "other"])


def test_settle_records_do_not_grow_for_ever_and_name_both_streams(tmp_path: Path) -> None:
    first, second = Driver(tmp_path, KAFKA, FILES), Driver(tmp_path, FILES, KAFKA)
    for batch in range(10):
        first.take(batch, f"kafka {batch}")
        second.take(batch, f"file {batch}")

    store = Store(location_of(tmp_path))
    # Twenty: the last of them has deleted those that were too old.
    assert len(store.paths(SETTLE_RECORDS)) == KEPT_RECORDS
    records = SettleRecords(store)
    records.follow()
    assert records.newest == {KAFKA: 9, FILES: 9}


def test_a_stream_alone_writes_no_settle_records(tmp_path: Path) -> None:
    Driver(tmp_path, KAFKA, FILES).take(0, "before")

    assert Store(location_of(tmp_path)).paths(SETTLE_RECORDS) == []


def test_an_old_record_brings_no_manifest_back_that_log_cleanup_has_deleted(tmp_path: Path) -> None:
    second = Driver(tmp_path, FILES, KAFKA)
    Driver(tmp_path, KAFKA, FILES).take(0, "before")
    store = Store(location_of(tmp_path))
    standing = Manifests(store, KAFKA).read(0)
    assert standing is not None
    Manifests(store, KAFKA).settle(msgspec.structs.replace(standing, batch_id=1, tables=()))
    store.delete(f"_gamelake/streams/{KAFKA}/manifests/{0:012d}.json.zst")

    second.take(0, "other")

    assert Manifests(store, KAFKA).batches() == [1]


def test_an_old_number_that_is_created_again_between_listing_and_reading_brings_no_manifest(tmp_path: Path) -> None:
    first, second = Driver(tmp_path, KAFKA, FILES), Driver(tmp_path, FILES, KAFKA)
    first.take(0, "before")
    store = Store(location_of(tmp_path))
    standing = Manifests(store, KAFKA).read(0)
    assert standing is not None
    stale = msgspec.structs.replace(standing, batch_id=1, tables=(silver(store, ["both"]),))
    newest = max(store.paths(SETTLE_RECORDS))
    content = store.get(newest) or b""
    decided = msgspec.json.decode(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read())
    record = msgspec.json.encode(decided | {"manifest": stale})

    def meanwhile() -> None:
        for batch in range(KEPT_RECORDS + CLEAN_UP_EVERY):
            second.take(batch, "both", f"other {batch}")
        assert store.put_new(newest, bytes(pa.compress(record, "zstd", asbytes=True)))

    slow = InterruptedStore(location_of(tmp_path), meanwhile)
    records = SettleRecords(slow)
    slow.interrupt(2)
    records.follow()

    assert slow.stalled == "get"
    assert Manifests(store, KAFKA).batches() == [0]
    assert records.newest == {KAFKA: 0, FILES: KEPT_RECORDS + CLEAN_UP_EVERY - 1}


def test_a_batch_that_another_driver_decides_during_a_start_is_committed_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is rebuilt behind that batch, and its driver is killed before its commits."""
    old = Driver(tmp_path, KAFKA, FILES)
    old.take(0, "before")
    store = Store(location_of(tmp_path))
    stream = Stream(store, KAFKA, TOPIC)
    standing = stream.last_manifest()
    assert standing is not None
    for path in store.paths(checkpoint_path(KAFKA, 0)):
        store.delete(path)
    decided = msgspec.structs.replace(standing, batch_id=1, tables=(silver(store, ["decided"]),))
    opening = Stream.open

    def after_a_decision(stream: Stream, topic_id: str) -> Generation:
        stream.manifests.settle(decided)
        return opening(stream, topic_id)

    monkeypatch.setattr(Stream, "open", after_a_decision)
    monkeypatch.setattr(runner, "SourceTopic", lambda *_: StandingTopic())
    settings = cast("Any", SimpleNamespace(kafka=None, topic=TOPIC, stream=KAFKA))
    with stream_tables(location_of(tmp_path)) as tables:
        source = runner.prepare(settings, store, tables)

    assert source.generation.first_batch == 2
    assert rows(tmp_path) == Counter(["before", "decided"])


class RefusingStore(Store):
    """A store whose key may not read settle records."""

    def get(self, path: str) -> bytes | None:
        """Read anything else."""
        if path.startswith(SETTLE_RECORDS):
            raise PermissionError(path)
        return super().get(path)


def test_a_stream_without_a_concurrent_one_needs_no_right_on_settle_records(tmp_path: Path) -> None:
    Driver(tmp_path, KAFKA, FILES)
    Driver(tmp_path, FILES, KAFKA).take(0, "a")
    stream = Stream(RefusingStore(location_of(tmp_path)), "live_ops", TOPIC)
    with stream_tables(location_of(tmp_path)) as tables:
        finish_last_batch(stream, tables, has_concurrent_stream=False)

        with pytest.raises(PermissionError):
            finish_last_batch(stream, tables)
