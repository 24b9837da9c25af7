"""Files in the stack's own bucket: notified by the object store, read once whatever dies, copied by the delivery."""

import gzip
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO

import pytest
import zstandard
from deltalake import DeltaTable
from minio import Minio

from gamelake.model.naming import BRONZE_FILES, DEAD_LETTERS
from tests.embedded.landing import events
from tests.embedded.sending import Sender
from tests.stack.object_store import ObjectStore
from tests.stack.platform import Stack
from tests.support.eventually import eventually

BUCKET, GAME = "landing", "Archery Duel"
PATIENCE = timedelta(minutes=3).total_seconds()


@pytest.fixture
def folder() -> str:
    """Where one test's files go."""
    return f"incoming/test-{uuid.uuid4().hex}"


def upload(uploads: Minio, name: str, content: bytes) -> None:
    uploads.put_object(BUCKET, name, BytesIO(content), len(content))


def rows(stack: Stack, table: str, columns: Sequence[str]) -> list[dict[str, object]]:
    location = stack.lakehouse
    options = dict(location.options)
    if not DeltaTable.is_deltatable(location.child(table), options):
        return []
    found = DeltaTable(location.child(table), storage_options=options).to_pyarrow_table(columns=list(columns))
    return [dict(row) for row in found.to_pylist()]


def await_once(stack: Stack, ids: Sequence[str]) -> None:
    """Wait until events are in silver, and see that each is there once."""
    eventually(lambda: set(ids) <= stack.event_ids().keys(), timeout=PATIENCE)
    counts = stack.event_ids()
    assert {counts[event_id] for event_id in ids} == {1}


def test_a_file_that_is_put_into_the_bucket_is_rows_and_has_its_account(
    stack: Stack, uploads: Minio, folder: str
) -> None:
    ids, content = events(200, GAME, gamer_id="p-1")
    upload(uploads, f"{folder}/a.json.gz", gzip.compress(content))

    await_once(stack, ids)

    mine = [
        row
        for row in rows(stack, BRONZE_FILES, ("object", "outcome", "records"))
        if row["object"] == f"{folder}/a.json.gz"
    ]
    assert mine == [{"object": f"{folder}/a.json.gz", "outcome": "taken", "records": 200}]
    eventually(lambda: stack.reconciliation().problems == [], timeout=60)


def test_events_that_came_by_kafka_are_not_doubled_by_a_file_nor_by_the_same_file_again(
    stack: Stack, sender: Sender, uploads: Minio, folder: str
) -> None:
    ids, content = events(50, GAME, gamer_id="p-1")
    upload(uploads, f"{folder}/first.json", content)
    await_once(stack, ids)

    more, rest = events(10, GAME, gamer_id="p-1")
    upload(uploads, f"{folder}/again.json.zst", zstandard.compress(content + rest))
    upload(uploads, f"{folder}/first.json", content)
    await_once(stack, [*ids, *more])
    sent = sender.send_events(20, GAME)
    await_once(stack, [*ids, *more, *sent])


def test_a_broken_file_is_a_dead_letter_and_delays_no_other(stack: Stack, uploads: Minio, folder: str) -> None:
    _, content = events(100, GAME, gamer_id="p-1")
    upload(uploads, f"{folder}/cut.json.gz", gzip.compress(content)[:-20])
    ids, good = events(100, GAME, gamer_id="p-1")
    upload(uploads, f"{folder}/good.json.gz", gzip.compress(good))

    await_once(stack, ids)

    named = {row["object"]: row["outcome"] for row in rows(stack, BRONZE_FILES, ("object", "outcome"))}
    eventually(
        lambda: (
            {"dead_letter"}
            == {
                row["outcome"]
                for row in rows(stack, BRONZE_FILES, ("object", "outcome"))
                if row["object"] == f"{folder}/cut.json.gz"
            }
        ),
        timeout=PATIENCE,
    )
    assert named[f"{folder}/good.json.gz"] == "taken"
    assert any(
        f"{folder}/cut.json.gz" in str(row["headers"])
        for row in rows(stack, DEAD_LETTERS, ("reason", "headers"))
        if row["reason"] == "unreadable_file"
    )


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ingest-events", "kafka", "object-store"])
def test_files_that_arrive_while_a_service_is_killed_are_each_read_once(
    victim: str, stack: Stack, uploads: Minio, folder: str
) -> None:
    ids: list[str] = []

    def more(number: int) -> None:
        new, content = events(50, GAME, gamer_id="p-1")
        eventually(lambda: put(f"{folder}/{number}.json", content), timeout=PATIENCE)
        ids.extend(new)

    def put(name: str, content: bytes) -> bool:
        try:
            upload(uploads, name, content)
        except Exception:  # the store is being killed: the client tries again
            return False
        return True

    for number in range(10):
        more(number)
    stack.crash(victim)
    for number in range(10, 20):
        more(number)
    stack.await_health(victim)

    await_once(stack, ids)
    eventually(lambda: stack.reconciliation().problems == [], timeout=60)


def test_the_topic_of_events_is_copied_into_dated_files_whose_events_are_all_there(
    stack: Stack, sender: Sender
) -> None:
    sent = Counter(sender.send_events(500, GAME))
    store = ObjectStore.of_the_tests().client

    def delivered() -> Counter[str]:
        found: Counter[str] = Counter()
        for each in store.list_objects(BUCKET, "delivered/", recursive=True):
            content = (
                zstandard.ZstdDecompressor()
                .decompressobj()
                .decompress(store.get_object(BUCKET, str(each.object_name)).read())
            )
            found.update(event_id for event_id in sent if event_id.encode() in content)
        return found

    eventually(lambda: delivered() == sent, timeout=PATIENCE)


def test_what_was_lost_on_the_way_is_found_by_the_one_listing(stack: Stack, folder: str) -> None:
    ids, content = events(30, GAME, gamer_id="p-1")
    store = ObjectStore.of_the_tests().client
    reported = store.get_bucket_notification(BUCKET)
    store.delete_bucket_notification(BUCKET)
    try:
        store.put_object(BUCKET, f"{folder}/lost.json", BytesIO(content), len(content))
    finally:
        store.set_bucket_notification(BUCKET, reported)

    stack.compose(
        "exec", "--no-TTY", "maintenance-scheduler", "python", "-m", "jobs.reconcile_files", "--older-than-minutes", "0"
    )

    await_once(stack, ids)
