"""Checkpoints: a damaged one is named, a lost one is rebuilt from manifests, one of another stream is rejected."""

import shutil
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from gamelake.ledger.generations import Generation
from gamelake.ledger.held_tables import stream_tables
from gamelake.model.errors import AnotherDriverError, CheckpointError, TopicRecreatedError
from gamelake.model.failpoints import Failpoints
from gamelake.objects.store import Store
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.checkpoint import CheckpointState
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.consumers import PartitionRange
from tests.support.interrupted_store import InterruptedStore
from tests.unit.streaming.streams import (
    NEW_TOPIC_ID,
    TOPIC,
    TOPIC_ID,
    FailingStore,
    a_stream,
    decide,
    location_of,
    log_batch,
)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return a_stream(tmp_path)


@pytest.fixture
def running(stream: Stream, tmp_path: Path) -> Generation:
    """A stream that has done two batches."""
    generation = stream.open(TOPIC_ID)
    for batch_id, last in ((0, 9), (1, 19)):
        log_batch(tmp_path, generation, batch_id, {0: last + 1, 1: 0})
        decide(stream, generation, batch_id, last)
    return generation


def _remove_checkpoint(folder: Path, generation: Generation, pattern: str = "**/*") -> None:
    for path in (folder / generation.checkpoint).glob(pattern):
        if path.is_file():
            path.unlink()


def test_a_first_start_makes_generation_0_and_its_own_checkpoint(stream: Stream) -> None:
    generation = stream.open(TOPIC_ID)

    assert (generation.number, generation.first_batch, generation.reason) == (0, 0, "first start")
    assert stream.folder(generation).read() == CheckpointState(generation.query_id, None, None)
    assert stream.open(TOPIC_ID) == stream.current() == generation


def test_an_intact_checkpoint_is_continued(running: Generation, stream: Stream) -> None:
    assert stream.open(TOPIC_ID) == running
    assert stream.folder(running).read() == CheckpointState(running.query_id, 1, 1)
    assert stream.folder(running).offsets(1) == {0: 20, 1: 0}


def test_a_batch_is_planned_between_two_entries_of_the_log(running: Generation, stream: Stream) -> None:
    first, second = stream.folder(running).planned(0), stream.folder(running).planned(1)

    assert (dict(first.before), dict(first.after), first.records) == ({}, {0: 10, 1: 0}, 10)
    assert (dict(second.before), dict(second.after), second.records) == ({0: 10, 1: 0}, {0: 20, 1: 0}, 10)


def test_the_first_batch_begins_where_kafka_held_records_when_the_query_started(
    running: Generation, stream: Stream, tmp_path: Path
) -> None:
    initial = tmp_path / running.checkpoint / "sources/0/0"
    initial.parent.mkdir(parents=True)
    initial.write_bytes(b'\x00v1\n{"events":{"0":4,"1":0}}')

    assert stream.folder(running).planned(0).ranges == [PartitionRange(0, 4, 10)]

    initial.write_bytes(b"\x00v1\n{")
    with pytest.raises(CheckpointError, match=r"checkpoint is damaged: .*sources/0/0"):
        stream.folder(running).planned(0)


_FILES = ("metadata", "offsets/0", "offsets/1", "commits/1")


@pytest.mark.parametrize("file", _FILES)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_truncated_file_is_named(
    file: str, share: float, running: Generation, stream: Stream, tmp_path: Path
) -> None:
    path = tmp_path / running.checkpoint / file
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])

    with pytest.raises(CheckpointError, match=rf"checkpoint is damaged: .*{file}: .*jobs/rebuild_checkpoint\.py"):
        stream.open(TOPIC_ID)


def test_a_checkpoint_of_a_newer_format_is_refused_with_a_remedy(
    running: Generation, stream: Stream, tmp_path: Path
) -> None:
    path = tmp_path / running.checkpoint / "offsets/1"
    path.write_bytes(path.read_bytes().replace(b"v1", b"v9", 1))

    with pytest.raises(CheckpointError, match=r"offsets/1: .*rebuild_checkpoint"):
        stream.open(TOPIC_ID)


@pytest.mark.parametrize(("file", "named"), [("metadata", "metadata"), ("offsets/1", "offsets")])
def test_a_missing_checkpoint_file_is_named(
    file: str, named: str, running: Generation, stream: Stream, tmp_path: Path
) -> None:
    for path in (tmp_path / running.checkpoint / "offsets").glob("?" if file == "offsets/1" else "none"):
        path.unlink()
    if file == "metadata":
        (tmp_path / running.checkpoint / file).unlink()

    with pytest.raises(CheckpointError, match=rf"checkpoint is damaged: .*{named}"):
        stream.open(TOPIC_ID)


def test_the_offsets_of_another_topic_are_rejected(running: Generation, stream: Stream, tmp_path: Path) -> None:
    log_batch(tmp_path, running, 2, {0: 30}, topic="other")

    with pytest.raises(CheckpointError, match=rf"it is not of the topic '{TOPIC}'"):
        stream.open(TOPIC_ID)


def test_the_checkpoint_of_another_query_is_rejected(running: Generation, stream: Stream, tmp_path: Path) -> None:
    (tmp_path / running.checkpoint / "metadata").write_text('{"id":"someone-else"}', encoding="utf-8")

    with pytest.raises(CheckpointError, match="belongs to query someone-else"):
        stream.open(TOPIC_ID)


def test_a_lost_checkpoint_is_rebuilt_where_the_manifests_end(
    running: Generation, stream: Stream, tmp_path: Path
) -> None:
    decide(stream, running, 2, last=49, partition=1)
    _remove_checkpoint(tmp_path, running)

    rebuilt = stream.open(TOPIC_ID)

    assert (rebuilt.number, rebuilt.first_batch, rebuilt.query_id) == (1, 3, running.query_id)
    assert rebuilt.app_id != running.app_id
    folder = stream.folder(rebuilt)
    assert folder.read() == CheckpointState(running.query_id, 2, 2)
    assert folder.offsets(2) == {0: 20, 1: 50}
    assert stream.open(TOPIC_ID) == rebuilt


def test_a_checkpoint_that_is_rebuilt_twice_continues_after_the_batches_between(
    running: Generation, stream: Stream, tmp_path: Path
) -> None:
    rebuilt = stream.rebuild(TOPIC_ID, "asked for")
    decide(stream, rebuilt, 2, last=29)
    log_batch(tmp_path, rebuilt, 2, {0: 30, 1: 0})

    again = stream.rebuild(TOPIC_ID, "asked for")

    assert (again.number, again.first_batch) == (2, 3)
    assert stream.folder(again).offsets(2) == {0: 30}


def test_a_checkpoint_that_is_lost_before_the_first_batch_starts_at_the_beginning(
    stream: Stream, tmp_path: Path
) -> None:
    first = stream.open(TOPIC_ID)
    _remove_checkpoint(tmp_path, first)

    rebuilt = stream.open(TOPIC_ID)

    assert (rebuilt.number, rebuilt.first_batch) == (1, 0)
    assert stream.folder(rebuilt).read() == CheckpointState(first.query_id, None, None)


@pytest.mark.parametrize("writes", range(8))
def test_an_interrupted_rebuild_never_starts_from_the_beginning(
    writes: int, running: Generation, stream: Stream, tmp_path: Path
) -> None:
    _remove_checkpoint(tmp_path, running)
    dying = Stream(FailingStore(location_of(tmp_path), writes), "ingest", TOPIC)

    try:
        dying.open(TOPIC_ID)
    except ConnectionError:
        assert writes < 7

    opened = stream.open(TOPIC_ID)
    assert stream.folder(opened).read() == CheckpointState(running.query_id, 1, 1)
    assert stream.folder(opened).offsets(1) == {0: 20}


def test_a_checkpoint_that_is_rebuilt_while_another_driver_decides_a_batch_reads_no_offset_twice(
    running: Generation, tmp_path: Path
) -> None:
    """The driver of the old generation decides a batch before any one operation of the rebuild."""
    for at in count(1):
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "_gamelake", folder / "_gamelake")
        old = a_stream(folder)

        def meanwhile(old: Stream = old) -> None:
            decide(old, running, 2, last=29)

        store = InterruptedStore(location_of(folder), meanwhile)
        store.interrupt(at)

        rebuilt = Stream(store, "ingest", TOPIC).rebuild(TOPIC_ID, "asked for")

        next_offset = {2: 20, 3: 30}[rebuilt.first_batch]
        assert old.folder(rebuilt).offsets(rebuilt.first_batch - 1) == {0: next_offset}, at
        if not store.stalled:
            break
    assert at > 10


def test_a_rebuilt_checkpoint_without_logs_is_rejected(running: Generation, stream: Stream, tmp_path: Path) -> None:
    rebuilt = stream.rebuild(TOPIC_ID, "asked for")
    _remove_checkpoint(tmp_path, rebuilt, "*/*")

    with pytest.raises(CheckpointError, match="has lost what was done before batch 2"):
        stream.open(TOPIC_ID)
    assert running.number == 0


@pytest.mark.usefixtures("running")
def test_a_recreated_topic_is_rejected(stream: Stream) -> None:
    for attempt in (stream.open, lambda topic_id: stream.rebuild(topic_id, "asked for")):
        with pytest.raises(TopicRecreatedError, match="--new-topic"):
            attempt(NEW_TOPIC_ID)


def test_a_recreated_topic_is_read_from_its_beginning_on_request(running: Generation, stream: Stream) -> None:
    restarted = stream.restart_on_new_topic(NEW_TOPIC_ID, {0: 3, 1: 0})

    assert (restarted.number, restarted.first_batch, restarted.topic_id) == (1, 2, NEW_TOPIC_ID)
    assert stream.folder(restarted).offsets(1) == {0: 3, 1: 0}
    assert stream.next_offsets(NEW_TOPIC_ID) == {}
    assert stream.open(NEW_TOPIC_ID) == restarted
    assert restarted.app_id != running.app_id


def test_two_processes_can_not_start_the_same_generation(tmp_path: Path, stream: Stream) -> None:
    class LateStore(Store):
        """Sees nothing that others did since it was opened."""

        def paths(self, prefix: str) -> list[str]:
            return []

    stream.open(TOPIC_ID)

    with pytest.raises(CheckpointError, match="another process has just started generation 0"):
        Stream(LateStore(location_of(tmp_path)), "ingest", TOPIC).open(TOPIC_ID)
    assert stream.open(TOPIC_ID).number == 0


def test_a_stream_that_was_never_started_can_not_be_rebuilt(stream: Stream) -> None:
    with pytest.raises(CheckpointError, match="never started"):
        stream.rebuild(TOPIC_ID, "asked for")
    with pytest.raises(CheckpointError, match="never started"):
        stream.restart_on_new_topic(NEW_TOPIC_ID, {})


def test_offsets_that_kafka_has_deleted_can_be_skipped_and_are_recorded(running: Generation, stream: Stream) -> None:
    expected = stream.next_offsets(TOPIC_ID)
    earliest = {partition: offset + 5 for partition, offset in expected.items()}

    rebuilt = stream.rebuild(TOPIC_ID, "asked for", earliest)

    assert rebuilt.number == running.number + 1
    assert {taken.partition: (taken.first, taken.last) for taken in rebuilt.lost} == {
        partition: (offset, offset + 4) for partition, offset in expected.items()
    }
    assert stream.folder(rebuilt).offsets(rebuilt.first_batch - 1) == earliest
    assert stream.rebuild(TOPIC_ID, "asked again", earliest).lost == ()


def test_no_offset_is_skipped_that_kafka_still_holds(stream: Stream, running: Generation) -> None:
    rebuilt = stream.rebuild(running.topic_id, "asked for", {0: 0})

    assert rebuilt.lost == ()
    assert stream.folder(rebuilt).offsets(rebuilt.first_batch - 1) == stream.next_offsets(TOPIC_ID)


def test_a_batch_that_another_driver_has_decided_stops_this_one(
    running: Generation, stream: Stream, tmp_path: Path
) -> None:
    decide(stream, structs.replace(running, number=7), batch_id=2, last=39)
    log_batch(tmp_path, running, 2, {0: 40})
    # A batch that is decided already needs neither records nor a decider.
    nothing = cast("Any", None)
    with stream_tables(location_of(tmp_path)) as tables:
        body = FanOut(OpenStream(stream, running, tables, nothing), nothing, nothing, Failpoints())

        with pytest.raises(AnotherDriverError, match="two drivers run"):
            body(nothing, 2)
