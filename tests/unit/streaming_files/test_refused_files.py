"""A file that can't be read is one dead letter, whatever its name and content are, and harms no other file."""

import io
import json
import random
import uuid
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.streaming.files.plan import MIB, FileLimits
from gamelake.streaming.files.refusals import refusal
from tests.unit.properties import examples
from tests.unit.streaming_files.contract import line
from tests.unit.streaming_files.task_runs import FileRuns, Run, notification


def an_event() -> tuple[str, bytes]:
    """The id of an event of now, and its line."""
    event_id = str(uuid.uuid4())
    return event_id, line(event_id=event_id, event_name="e", event_time=datetime.now(UTC).isoformat()) + b"\n"


def run_with_others(runs: FileRuns, odd: bytes) -> Run:
    """Run a notification between those of two good files, whose events must become rows."""
    (first, one), (second, two) = an_event(), an_event()
    run = runs.run(runs.write("one.json", one), odd, runs.write("two.json", two))
    assert sorted(map(str, run.event_ids())) == sorted([first, second])
    return run


_ODD_KEYS = [
    "incoming//a.json",
    "/a.json",
    "../one.json",
    "a/./b.json",
    "a\tb.json",
    "a\0b.json",
    "a\nb.json",
    "x" * 300,
    "x/" * 500 + "x",
    ".",
    "..",
    "%2e%2e",
    "\U0001f3ae.json",
    "a\u202eb.json",
    "one.json/below.json",
    "folder",
]


@pytest.mark.parametrize("key", _ODD_KEYS)
def test_an_odd_key_is_a_dead_letter_with_its_notification(runs: FileRuns, key: str) -> None:
    (runs.landing / "folder").mkdir()
    odd = notification(key, 10)

    run = run_with_others(runs, odd)

    [(reason, value)] = run.letters()
    assert reason in ("unreadable_file", "missing_file")
    assert value == odd
    assert run.outcomes()[key] == "dead_letter"
    assert runs.run(odd).letters() == run.letters()


@examples(20)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), st.integers(0, 2**63 - 1))
def test_any_key_and_size_harm_no_other_file(tmp_path_factory: pytest.TempPathFactory, key: str, size: int) -> None:
    run_with_others(FileRuns(tmp_path_factory.mktemp("runs")), notification(key, size))


def a_zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("build.bin", random.Random(7).randbytes(3_000_000))
    return sink.getvalue()


def a_parquet(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


_OTHER_CONTENT: dict[str, Callable[[], bytes]] = {
    "build.zip": a_zip,
    "noise.json": lambda: random.Random(1).randbytes(1_000_000),
    "noise.pb": lambda: random.Random(2).randbytes(1_000_000),
    "noise.parquet": lambda: b"PAR1" + random.Random(3).randbytes(100_000) + b"PAR1",
    "zeros.pb": lambda: bytes(MIB),
    "zeros.json": lambda: bytes(MIB),
    "many-objects.json": lambda: b"{}\n" * 100_000,
    "an-event-and-noise.json": lambda: line() + b"\n" + random.Random(4).randbytes(1_000_000),
    "table.csv": lambda: b"event_id,event_time\n" + b"a,b\n" * 50_000,
    "one-array.json": lambda: json.dumps([{"event_id": str(n)} for n in range(5_000)], indent=1).encode(),
    "pretty.json": lambda: json.dumps({"events": [{"event_id": str(n)} for n in range(5_000)]}, indent=1).encode(),
    "one-line.json": lambda: b"[" * 10 * MIB,
    "utf16.json": lambda: (json.dumps({"event_id": "a"}) + "\n").encode("utf-16") * 5_000,
    "extension.parquet": lambda: a_parquet(event_id=pa.array([uuid.uuid4().bytes], pa.uuid())),
    "deep.parquet": lambda: a_parquet(event_params=pa.array([{"level": {"a": {"b": [1]}}}])),
    "null.parquet": lambda: a_parquet(event_id=pa.nulls(3), attributes=pa.array([1, 2, 3])),
}


@pytest.mark.parametrize("name", _OTHER_CONTENT)
def test_a_file_of_something_else_is_one_dead_letter(runs: FileRuns, name: str) -> None:
    odd = runs.write(name, _OTHER_CONTENT[name]())

    run = run_with_others(runs, odd)

    assert run.letters() == [("unreadable_file", odd)]


@pytest.mark.parametrize("suffix", ["json", "pb", "parquet", "json.gz"])
@examples(12)
@given(st.binary(max_size=200))
def test_any_content_harms_no_other_file(tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes) -> None:
    magic = {"parquet": b"PAR1", "json.gz": b"\x1f\x8b\x08\x00"}.get(suffix, b"")
    runs = FileRuns(tmp_path_factory.mktemp("runs"))

    run_with_others(runs, runs.write(f"odd.{suffix}", magic + content))


def test_a_file_with_a_bad_line_gives_its_other_events(runs: FileRuns) -> None:
    event_id, good = an_event()

    run = (
        run_with_others(runs, runs.write("mixed.json", b"no JSON\n" + good))
        if False
        else runs.run(runs.write("mixed.json", b"no JSON\n" + good))
    )

    assert run.event_ids() == [event_id]
    assert run.letters() == [("undecodable", b"no JSON")]


def test_a_file_larger_than_its_notification_says_is_read_whole(runs: FileRuns) -> None:
    event_id, good = an_event()
    runs.write("small.json", good)

    run = runs.run(notification("small.json", 0))

    assert run.event_ids() == [event_id]


def test_a_file_beyond_the_limit_is_too_large(tmp_path: Path) -> None:
    runs = FileRuns(tmp_path, FileLimits(stored_bytes=1_000, decompressed_bytes=10_000))

    run = run_with_others(runs, runs.write("large.json", line() * 20))

    assert [reason for reason, _ in run.letters()] == ["file_too_large"]


def test_a_full_disk_is_an_outage_and_refuses_no_file() -> None:
    full = OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        refusal(0, full)


def test_a_refusal_quotes_no_value() -> None:
    assert "secret" not in refusal(0, ValueError("secret")).detail
