"""Objects of any name in a real store: a listing finds them, their events are rows, and no other object is affected."""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import obstore
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from minio.error import S3Error

from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import Location, open_objects
from gamelake.streaming.files import fetching
from gamelake.streaming.files.arrivals.any_names import BucketOfAnyNames, ListedObject
from gamelake.streaming.files.arrivals.changes import value_of
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.arrivals.reconciliation import missing_notifications
from gamelake.streaming.files.refusals import RefusedObject
from tests.stack.object_store import ObjectStore
from tests.unit.poison.file_attacks import KEYS
from tests.unit.properties import examples
from tests.unit.streaming_files.contract import line
from tests.unit.streaming_files.task_runs import FileRuns, Run, notification

pytestmark = pytest.mark.object_store

# MinIO refuses an empty segment, segments of points, and segments of more than 255 bytes. No other object may be below
# the name of an object: its listing leaves them out.
TAKEN = (
    "a\tb.json",
    "a\nb.json",
    "a\x01b.json",
    "a\x7fb.json",
    "a b+c%2F&#?.json",
    "%2e%2e",
    "\U0001f3ae",
    "x/" * 500 + "x",
)
ODD_NAMES = st.lists(KEYS.filter(bool), min_size=1, max_size=5)
_UNTIL_ONE_FAILS = settings(examples(25), phases=[Phase.generate], report_multiple_bugs=False)
REFUSED = ("a//b.json", "a/../b.json", "..", "./a", "x" * 300)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of files."""

    store: ObjectStore
    name: str

    @property
    def location(self) -> Location:
        """The bucket, as the stream of files has it."""
        return self.store.location(f"s3://{self.name}")

    def put(self, key: str, content: bytes) -> bytes:
        """Write an object and return its notification."""
        self.store.client.put_object(self.name, key, BytesIO(content), len(content))
        return notification(key, len(content), self.name)

    def run(self, folder: Path, *notifications: bytes) -> Run:
        return FileRuns(folder, bucket=self.name).run(*notifications, landing=self.location)


@pytest.fixture
def files(object_store: ObjectStore, bucket: str) -> Bucket:
    return Bucket(object_store, bucket)


def check_names(keys: Sequence[str], files: Bucket, folder: Path) -> None:
    """Read objects with odd names between good ones: each is accounted for, and the good ones' events are rows."""
    notifications, ids = list[bytes](), list[str]()
    for key in keys:
        ids.append(str(uuid.uuid4()))
        notifications.append(files.put(f"neighbours/{ids[-1]}.json", line(event_id=ids[-1])))
        # Not every name is one of an object in this store, and a notification may have any name.
        with suppress(S3Error, ValueError):
            files.put(key, line())
        notifications.append(notification(key, 10, files.name))

    run = files.run(folder, *notifications)

    assert set(ids) <= set(map(str, run.event_ids()))
    named = {key for key in keys if not key.endswith("/")}
    assert named <= run.outcomes().keys()
    assert {reason for reason, _ in run.letters()} <= {
        "unreadable_file",
        "missing_file",
        "unknown_field",
        "undecodable",
    }


def check_listing(keys: Sequence[str], files: Bucket, folder: Path) -> None:
    """List objects with odd names between others: the listing has them all."""
    taken = set[str]()
    for key in keys:
        files.put(f"neighbours/{len(taken)}.json", line())
        with suppress(S3Error, ValueError):
            files.put(key, line())
            taken.add(key)

    listed = {each.name.key for each in LandingBucket(files.location).objects("")}

    # This store drops two slashes, and one at the beginning.
    assert {key for key in taken if not key.startswith("/")} <= listed
    assert "neighbours/0.json" in listed
    del folder


@pytest.mark.parametrize("check", [check_names, check_listing])
def test_odd_names_harm_no_other_object(
    check: Callable[[Sequence[str], Bucket, Path], None], files: Bucket, tmp_path: Path
) -> None:
    @examples(15)
    @given(ODD_NAMES)
    def attack(keys: list[str]) -> None:
        check(keys, files, tmp_path / uuid.uuid4().hex)

    attack()


def test_the_events_of_objects_with_odd_names_are_rows(files: Bucket, tmp_path: Path) -> None:
    values = [files.put(key, line(event_id=f"event-{number}")) for number, key in enumerate(TAKEN)]

    run = files.run(tmp_path, *values)

    assert run.outcomes() == dict.fromkeys(TAKEN, "taken")
    assert sorted(map(str, run.event_ids())) == [f"event-{number}" for number in range(len(TAKEN))]


def test_a_name_that_the_store_refuses_is_a_dead_letter(files: Bucket, tmp_path: Path) -> None:
    good = files.put("good.json", line())

    run = files.run(tmp_path, good, *(notification(key, 10, files.name) for key in REFUSED))

    assert run.outcomes() == {"good.json": "taken", **dict.fromkeys(REFUSED, "dead_letter")}
    assert {reason for reason, _ in run.letters()} == {"unreadable_file"}


def test_a_reconciliation_finds_objects_with_odd_names_and_those_next_to_them(files: Bucket, tmp_path: Path) -> None:
    keys = {*TAKEN, "good.json", "incoming/good.json"}
    values = {key: files.put(key, line()) for key in keys}
    files.put("folder/", b"")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    lakehouse = Location(uri=tmp_path.as_uri())

    found = missing_notifications(lakehouse, LandingBucket(files.location), "", timedelta(0), tomorrow)

    changes = {change.key: change for change in found.changes()}
    assert changes.keys() == values.keys()
    assert found.summary.named == len(keys)
    run = files.run(tmp_path / "runs", *map(value_of, changes.values()))
    assert set(run.outcomes().values()) == {"taken"}


@pytest.mark.parametrize("key", ["good.json", "a\tb.json"])
def test_a_deleted_bucket_is_an_outage_and_makes_no_dead_letters(
    object_store: ObjectStore, tmp_path: Path, key: str
) -> None:
    deleted = Bucket(object_store, f"test-{uuid.uuid4().hex}")

    with pytest.raises(StoreUnavailableError, match="NoSuchBucket"):
        deleted.run(tmp_path, notification(key, 10, deleted.name))
    with pytest.raises(StoreUnavailableError, match=f"{deleted.name} can't be listed"):
        LandingBucket(deleted.location).objects("")


def names_that_end_the_task(undone: pytest.MonkeyPatch) -> None:
    def refusal(index: int, error: Exception) -> RefusedObject:
        del index
        raise error

    undone.setattr(fetching, "refusal", refusal)


def listings_by_the_client_that_reads(undone: pytest.MonkeyPatch) -> None:
    def objects(self: BucketOfAnyNames, prefix: str) -> Iterator[ListedObject]:
        store = open_objects(Location(uri=f"s3://{self._bucket}", options=self._options))
        for found in (each for batch in obstore.list(store, prefix or None) for each in batch):
            name = ObjectName(bucket=self._bucket, key=found["path"], version="", etag="")
            yield ListedObject(name, found["size"], 0)

    undone.setattr(BucketOfAnyNames, "objects", objects)


@pytest.mark.parametrize(
    ("check", "undo", "found"),
    [
        (check_names, names_that_end_the_task, "UnreadableFileError|MissingObjectError"),
        (check_listing, listings_by_the_client_that_reads, "InvalidPathError|AssertionError"),
    ],
)
def test_a_fault_of_odd_names_is_found_again(
    check: Callable[[Sequence[str], Bucket, Path], None],
    undo: Callable[[pytest.MonkeyPatch], None],
    found: str,
    files: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def attack(keys: list[str]) -> None:
        check(keys, files, tmp_path / uuid.uuid4().hex)

    undo(monkeypatch)
    with pytest.raises(Exception) as caught:  # noqa: PT011 # its type is compared below
        _UNTIL_ONE_FAILS(given(ODD_NAMES)(attack))()
    assert re.fullmatch(found, caught.type.__name__)
