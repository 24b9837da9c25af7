"""Hostile notifications, names and files, and a batch of the file source that has them between good files."""

import gzip
import io
import json
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa
import zstandard
from hypothesis import strategies as st

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.streaming.files.plan import MIB
from tests.unit.poison.budgets import budget
from tests.unit.streaming_files.bombs import one_text, parquet_of
from tests.unit.streaming_files.contract import line
from tests.unit.streaming_files.task_runs import FileRuns, Run, notification


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileObject:
    """A notification, and the object that it is about, unless it has none."""

    notification: bytes | None
    key: str = ""
    content: bytes | None = None


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("events.json", line())
    return sink.getvalue()


@cache
def _odd_contents() -> tuple[bytes, ...]:
    return (
        b"",
        _zip(),
        b"\xef\xbb\xbf" + line(),
        b"[" * 5_000 + b"]" * 5_000,
        b'{"attributes":' * 2_000,
        b"\0" * 20_000,
        gzip.compress(line())[:-4],
        gzip.compress(line()) * 2,
        # From here on they expand.
        gzip.compress(bytes(8 * MIB)),
        zstandard.compress(b"{}\n" * (4 * MIB)),
        zstandard.compress(b'{"event_id":"a"},' * (4 * MIB)),
        parquet_of({"event_id": one_text(4_000, 300_000)}),
    )


_PARQUET = parquet_of({"event_id": pa.array(["a"]), "event_name": pa.array(["e"])})
_CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.one_of(st.binary(max_size=20), st.just(line())), max_size=4).map(b"\n".join),
    st.integers(0, len(_PARQUET)).map(lambda end: _PARQUET[:end]),
    st.builds(
        lambda at, byte: _PARQUET[:at] + bytes([byte]) + _PARQUET[at + 1 :], st.integers(4, 300), st.integers(0, 255)
    ),
    # By their numbers: some are so long that hypothesis would warn about them.
    st.sampled_from(range(12)).map(lambda number: _odd_contents()[number]),
)
_EXPANDING = st.sampled_from(range(8, 12)).map(lambda number: _odd_contents()[number])
_SUFFIXES = (
    "",
    ".json",
    ".pb",
    ".pb.gz",
    ".json.gz",
    ".json.zst",
    ".parquet",
    ".binpb",
    ".delimited.zst",
    ".zip",
    ".gz.gz",
)
_NAMES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from(
        ["incoming//a", "..", "/a", "a/./b", "a\tb", "a\0b", "x" * 300, "x/" * 400, "%2e%2e", "\u202e", "good"]
    ),
)
KEYS = st.builds(lambda name, suffix: name + suffix, _NAMES, st.sampled_from(_SUFFIXES))
_SIZES = st.one_of(st.integers(0, 100), st.sampled_from([2**31, 2**63 - 1]))


def _stored(key: str, content: bytes) -> HostileObject:
    return HostileObject(notification=notification(key, len(content)), key=key, content=content)


def odd_object(key: str, number: int) -> HostileObject:
    return _stored(key, _odd_contents()[number])


_DEEP = b'{"Records":' + b"[" * 3_000 + b"]" * 3_000 + b"}"
_ODD_NOTIFICATIONS = (
    None, b"", b"null", b"[]", b"{}", b'{"Records": 7}', b'{"Records": [null]}', b"\xff\xfe", b"NaN", _DEEP,
    b"[" * 9_000,
    notification("a.json", 10).replace(b'"a.json"', b"5"),
    notification("a.json", 10).replace(b'"size": 10', b'"size": 9223372036854775808'),
    notification("a.json", 10).replace(b'"size": 10', b'"size": -1'),
    notification("a.json", 10).replace(b"landing", b"another"),
    notification("a.json", 10).replace(b"a.json", b"%ff%fe"),
)  # fmt: skip
HOSTILE_OBJECTS = st.one_of(
    st.builds(_stored, KEYS, _CONTENTS),
    st.builds(_stored, st.sampled_from(["a.pb.gz", "a.json.zst", "a.parquet"]), _EXPANDING),
    st.builds(lambda key, size: HostileObject(notification=notification(key, size), key=key), KEYS, _SIZES),
    st.sampled_from(range(len(_ODD_NOTIFICATIONS))).map(lambda at: HostileObject(notification=_ODD_NOTIFICATIONS[at])),
    st.binary(max_size=40).map(lambda value: HostileObject(notification=value)),
)
FILE_ATTACKS = st.lists(HOSTILE_OBJECTS, min_size=1, max_size=6)


def _good_files(runs: FileRuns) -> Iterator[tuple[str, bytes]]:
    """The ids of the events of new files, each with its notification."""
    while True:
        event_id = str(uuid.uuid4())
        event = line(event_id=event_id, event_name="good", event_time=datetime.now(UTC).isoformat())
        yield event_id, runs.write(f"good-{event_id}.json", event + b"\n")


def check_file_attack(attack: Sequence[HostileObject], folder: Path) -> None:
    """Run an attack; the events of good files must be rows within the budget, and each notification accounted for."""
    runs = FileRuns(folder)
    good_files = _good_files(runs)
    ids, notifications = list[str](), list[bytes | None]()
    for hostile in attack:
        if hostile.content is not None:
            # Not every name of an object store is one of a file.
            with suppress(OSError, ValueError):
                runs.write(hostile.key.lstrip("/").replace("..", "__"), hostile.content)
        event_id, good = next(good_files)
        ids.append(event_id)
        notifications += [good, hostile.notification]
    with budget():
        run = runs.run(*notifications)
    _check_accounts(run, ids, notifications)


def _check_accounts(run: Run, ids: Sequence[str], notifications: Sequence[bytes | None]) -> None:
    events = Counter(map(str, run.event_ids()))
    assert {event_id: events[event_id] for event_id in ids} == dict.fromkeys(ids, 1)
    for reason, _ in run.letters():
        assert reason in set(DeadLetterReason)
    assert sum(run.dead_letters.values()) == len(run.letters())
    accounted = {_key_in(notifications[result.position.offset]) for result in run.results}
    # An object that is notified twice is read once.
    missing = set(map(_key_in, notifications)) - {""} - accounted
    assert not missing, missing
    refused = {result.position.offset for result in run.results if result.outcome.value == "dead_letter"}
    values = [value for _, value in run.letters()]
    for offset in refused:
        assert notifications[offset] in values


def _key_in(value: bytes | None) -> str:
    """The key of the object in the landing bucket that a notification names; empty for another bucket or a folder."""
    with suppress(ValueError, RecursionError, TypeError, KeyError, IndexError):
        (entry,) = json.loads(value or b"")["Records"]
        key = entry["s3"]["object"]["key"]
        is_read = entry["s3"]["bucket"]["name"] == "landing" and isinstance(key, str) and not key.endswith("/")
        return key if is_read else ""
    return ""
