"""Each content of an object is read once, however often and in any order it is notified."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.objects.store import Location, Store
from gamelake.streaming.files.arrivals.changes import ObjectChange, value_of
from gamelake.streaming.files.chooser import Chooser, ChosenObjects, OverwritePolicy
from gamelake.streaming.plan import DedupPlan, clock_now
from tests.unit.properties import examples

MOMENT = datetime(2026, 11, 22, 10, tzinfo=UTC)
PLAN = DedupPlan(folder="events", batch_id=0, seed="seed", window_seconds=86_400)
LANDING = "landing"


def change(key: str, etag: str = "e", bucket: str = LANDING, event: str = "s3:ObjectCreated:Put") -> bytes:
    return value_of(ObjectChange(bucket=bucket, key=key, etag=etag, size=10, moment=MOMENT, event=event))


def chosen(
    folder: Path, *values: bytes | None, overwritten: OverwritePolicy = OverwritePolicy.READ, prefix: str = ""
) -> ChosenObjects:
    table = pa.table(
        {
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "timestamp": pa.array([MOMENT] * len(values), pa.timestamp("us", "UTC")),
            "value": pa.array(values, pa.binary()),
        }
    )
    return choose(folder, table, overwritten, prefix)


def choose(
    folder: Path, table: pa.Table, overwritten: OverwritePolicy = OverwritePolicy.READ, prefix: str = ""
) -> ChosenObjects:
    store = Store(Location(uri=f"file://{folder}"))
    return Chooser(LANDING, prefix, overwritten, store).choose(table, PLAN)


def keys(found: ChosenObjects) -> list[str]:
    return [each.name.key for each in found.objects]


@examples(100)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=12))
def test_a_content_is_chosen_once_and_an_overwritten_key_is_detected(
    tmp_path_factory: pytest.TempPathFactory, named: list[tuple[str, str]]
) -> None:
    found = chosen(tmp_path_factory.getbasetemp(), *(change(key, etag) for key, etag in named))

    contents = [(each.name.key, each.name.etag) for each in found.objects]
    assert Counter(contents) == Counter(set(named))
    first: set[str] = set()
    for each in found.objects:
        assert each.overwrites == (each.name.key in first)
        first.add(each.name.key)
    assert found.ignored["repeated"] == len(named) - len(contents)


def test_an_overwritten_file_is_a_dead_letter_if_so_configured(tmp_path: Path) -> None:
    found = chosen(tmp_path, change("a", "x"), change("a", "y"), overwritten=OverwritePolicy.DEAD_LETTER)

    assert [each.name.etag for each in found.objects] == ["x"]
    assert [(each.name.etag, each.reason) for each in found.rejected] == [("y", DeadLetterReason.OVERWRITTEN_FILE)]


def test_other_buckets_are_dead_letters_and_other_folders_are_ignored(tmp_path: Path) -> None:
    values = (change("in/a"), change("out/b"), change("in/"), change("in/c", bucket="foreign"))

    found = chosen(tmp_path, *values, prefix="in/")

    assert keys(found) == ["in/a"]
    assert found.ignored == Counter({"elsewhere": 2, "repeated": 0})
    assert [each.reason for each in found.rejected] == [DeadLetterReason.FOREIGN_OBJECT]


def test_removed_objects_and_notifications_without_object_are_ignored(tmp_path: Path) -> None:
    found = chosen(tmp_path, change("a", event="s3:ObjectRemoved:Delete"), b'{"Event": "s3:TestEvent"}')

    assert keys(found) == []
    assert found.ignored == Counter({"removed": 1, "no_object": 1})


def test_a_record_that_is_no_notification_is_a_dead_letter_with_its_bytes(tmp_path: Path) -> None:
    found = chosen(tmp_path, b"nonsense", None)

    assert [(each.reason, each.value) for each in found.rejected] == [
        (DeadLetterReason.BAD_NOTIFICATION, b"nonsense"),
        (DeadLetterReason.BAD_NOTIFICATION, None),
    ]


def test_a_notification_with_one_bad_entry_gives_its_other_objects(tmp_path: Path) -> None:
    entries = (
        json.loads(change("a"))["Records"] + [{"eventName": "ObjectCreated:Put"}] + json.loads(change("b"))["Records"]
    )
    value = json.dumps({"Records": entries}).encode()

    found = chosen(tmp_path, value)

    assert keys(found) == ["a", "b"]
    assert [(each.reason, each.value, each.position.index) for each in found.rejected] == [
        (DeadLetterReason.BAD_NOTIFICATION, value, 1)
    ]


@pytest.mark.parametrize("microseconds", [None, -1000, 0, 2**63 - 1, 253_402_300_800_000_000])
def test_an_impossible_timestamp_of_a_notification_counts_as_now(tmp_path: Path, microseconds: int | None) -> None:
    table = pa.table(
        {
            "partition": pa.array([0], pa.int32()),
            "offset": pa.array([0], pa.int64()),
            "timestamp": pa.array([microseconds], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "value": pa.array([change("a")], pa.binary()),
        }
    )
    before = clock_now()

    [named] = choose(tmp_path, table).objects

    assert before <= named.position.microseconds <= clock_now()
