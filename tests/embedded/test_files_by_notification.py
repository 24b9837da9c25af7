"""Files of events that notifications name: each once, whatever the notifications and the files are like."""

import gzip
import json
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import zstandard

from gamelake.ledger.manifests import Manifests
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.naming import BRONZE_EVENTS, BRONZE_FILES, DEAD_LETTERS, SILVER_EVENTS
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.lake_erasure import LakeErasure
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.landing import Landing, an_event, events
from tests.embedded.sending import Sender
from tests.support.eventually import eventually

ANNA, BEN = "a" * 32, "b" * 32


@pytest.fixture
def landing(lakehouse: Lakehouse, topic: Callable[[int], str]) -> Landing:
    return Landing(lakehouse, topic(2))


def outcomes(lakehouse: Lakehouse) -> Counter[tuple[str, str]]:
    rows = lakehouse.rows(BRONZE_FILES, "object", "outcome").to_pylist()
    return Counter((row["object"], row["outcome"]) for row in rows)


def test_a_file_becomes_rows_once_with_any_name_and_compression(lakehouse: Lakehouse, landing: Landing) -> None:
    ids, plain = events(100, "Archery")
    more, compressed = events(50, "Bingo", event_params={"level": 3, "platform": "ios"}, attributes={"mode": "hard"})
    others, zipped = events(20, "Bingo")
    landing.deliver("2026/11/22/a b+c.json", plain)
    landing.deliver("2026/11/22/two.json.gz", gzip.compress(compressed))
    landing.deliver("2026/11/22/three.json", zstandard.compress(zipped))
    landing.deliver("2026/11/22/empty.json", b"")
    landing.notify("2026/11/22/a b+c.json", "2026/11/22/a b+c.json")
    landing.say(landing.removed("2026/11/22/two.json.gz"))

    lakehouse.ingest("ingest_files")
    landing.notify("2026/11/22/two.json.gz")
    lakehouse.ingest("ingest_files")

    assert lakehouse.event_ids() == Counter([*ids, *more, *others])
    assert set(outcomes(lakehouse).values()) == {1}
    assert len(outcomes(lakehouse)) == 4
    assert lakehouse.rows(BRONZE_EVENTS, "offset").num_rows == 170
    row = lakehouse.rows("silver/bingo_events").to_pylist()[0]
    assert row["kafka_partition"] < 0
    assert lakehouse.reconciliation().problems == []
    assert lakehouse.reconciliation().records == 170


def test_a_restored_game_gets_the_events_of_files_back(lakehouse: Lakehouse, landing: Landing) -> None:
    ids: list[str] = []
    for name, count in (("one.json", 5), ("two.json", 30)):
        sent, content = events(count, "Archery")
        landing.deliver(name, content)
        ids += sent
        lakehouse.ingest("ingest_files")

    restore = lakehouse.start("--game", "archery", "--before-batch", "1", "--replay", "--yes", job="restore")

    assert restore.wait() == 0, restore.log_text()[-3000:]
    assert '"rows_removed": 30' in restore.log_text()
    assert lakehouse.event_ids("silver/archery_events") == lakehouse.event_ids() == Counter(ids)
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_a_backlog_of_notifications_is_taken_in_batches_of_so_many(lakehouse: Lakehouse, landing: Landing) -> None:
    lakehouse.settings["GAMELAKE_FILES_PER_BATCH"] = "2"
    ids: list[str] = []
    for number in range(6):
        found, content = events(5, "Archery")
        landing.deliver(f"{number}.json", content)
        ids += found

    lakehouse.ingest("ingest_files")

    taken = [
        sum(each.files.objects.values()) for each in Manifests(lakehouse.store, "ingest_files").last(10) if each.files
    ]
    assert sum(taken) == 6
    # Spark takes one more where the partitions of a topic share what is odd.
    assert max(taken) <= 3
    assert lakehouse.event_ids() == Counter(ids)


def test_events_from_kafka_are_not_doubled_by_files(lakehouse: Lakehouse, landing: Landing, sender: Sender) -> None:
    sent = sender.send_events(60, "Archery")
    lakehouse.ingest()
    ids, content = events(40, "Archery")
    copies = "".join(
        json.dumps(an_event(row["event_id"], "Archery", event_time=row["event_time"].isoformat())) + "\n"
        for row in lakehouse.rows(SILVER_EVENTS, "event_id", "event_time").to_pylist()
    )
    landing.deliver("one.json", content + copies.encode())
    landing.deliver("two.json", copies.encode() + content)
    lakehouse.ingest("ingest_files")

    assert lakehouse.event_ids() == Counter([*sent, *ids])
    assert lakehouse.reconciliation().duplicates == Counter({"archery": 160})
    assert lakehouse.reconciliation().problems == []


def test_an_unreadable_file_becomes_a_dead_letter_with_its_reason(lakehouse: Lakehouse, landing: Landing) -> None:
    ids, content = events(10, "Archery")
    lines = content.splitlines()
    lines[2] = b'{"event_id": "x", "level": '
    lines[5] = lines[5].replace(b'"event_name"', b'"email"')
    landing.deliver("lines.json", b"\n".join(lines))
    landing.deliver("cut.json.gz", gzip.compress(content)[:-20])
    landing.deliver("broken.parquet", b"PAR1 and then nothing")
    landing.deliver("gone.json", content)
    (landing.path / "gone.json").unlink()
    landing.deliver("changed.json", b"{}")
    landing.write("changed.json", events(3, "Bingo")[1])
    landing.send([(b"", b"no notification")])
    lakehouse.ingest("ingest_files")

    assert set(lakehouse.event_ids()) == {each for place, each in enumerate(ids) if place not in (2, 5)}
    assert lakehouse.reasons() == Counter(
        {"undecodable": 1, "unknown_field": 1, "unreadable_file": 2, "missing_file": 1, "bad_notification": 1}
    )
    letters = {row["reason"]: row for row in lakehouse.rows(DEAD_LETTERS).to_pylist()}
    assert letters["unknown_field"]["value"] is None
    assert letters["undecodable"]["value"] == lines[2]
    assert letters["undecodable"]["detail"].startswith("row 3 of lines.json: ")
    assert lakehouse.reconciliation().problems == []
    assert outcomes(lakehouse)["changed.json", "superseded"] == 1


@pytest.mark.parametrize(
    "step",
    [
        # A stream of records passes them in the same way.
        pytest.param(Failpoint.AFTER_FILES, marks=pytest.mark.slow),
        pytest.param(Failpoint.AFTER_SETTLE_RECORD, marks=pytest.mark.slow),
        pytest.param(Failpoint.AFTER_MANIFEST, marks=pytest.mark.slow),
        Failpoint.AFTER_TABLE_COMMIT,
    ],
)
def test_a_job_that_is_killed_reads_each_file_once(lakehouse: Lakehouse, landing: Landing, step: Failpoint) -> None:
    every: list[str] = []
    for _ in range(5):
        ids, content = events(30, "Archery")
        landing.deliver(f"{uuid.uuid4()}.json", content)
        every += ids
    lakehouse.ingest_killed(step, job="ingest_files")
    lakehouse.ingest("ingest_files")

    assert lakehouse.event_ids() == Counter(every)
    assert lakehouse.event_ids(SILVER_EVENTS) == Counter(every)
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_events_whose_file_came_first_are_not_doubled_by_kafka(
    lakehouse: Lakehouse, landing: Landing, sender: Sender
) -> None:
    ids = sender.send_events(80, "Archery")
    others = sender.send_events(20, "Bingo")
    lines = (json.dumps(an_event(each, "Archery")) for each in ids)
    landing.deliver("copies.json", "\n".join(lines).encode())
    lakehouse.ingest("ingest_files")
    assert lakehouse.event_ids() == Counter(ids)

    lakehouse.ingest()

    assert lakehouse.event_ids() == Counter([*ids, *others])
    assert lakehouse.reconciliation().duplicates == Counter({"archery": 80})
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_events_from_both_sources_at_once_are_ingested_once(
    lakehouse: Lakehouse, landing: Landing, sender: Sender
) -> None:
    every: list[str] = []
    reading = lakehouse.start(job="ingest_files")
    with lakehouse.ingesting():
        for number in range(12):
            # One time in both forms: files are compared with those parts of silver that have events of their times.
            now = datetime.now(UTC)
            ids = sender.send_events(200, "Archery", event_time=now)
            copies = (json.dumps(an_event(each, "Archery", event_time=now.isoformat())) for each in ids)
            landing.deliver(f"{number}.json", "\n".join(copies).encode())
            every += ids
        lakehouse.await_rows(SILVER_EVENTS, every)
        eventually(lambda: lakehouse.rows(BRONZE_FILES, "object").num_rows == 12, timeout=180)
        assert reading.terminate() == 0, reading.log_text()[-3000:]

    assert lakehouse.event_ids() == Counter(every)
    assert lakehouse.reconciliation().duplicates == Counter({"archery": len(every)})
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_files_without_a_notification_are_found_by_one_listing(lakehouse: Lakehouse, landing: Landing) -> None:
    named, content = events(10, "Archery")
    lost, unnamed = events(10, "Archery")
    landing.deliver("named.json", content)
    landing.write("lost.json", unnamed)
    lakehouse.ingest("ingest_files")

    for arguments, then in (("--dry-run",), named), ((), [*named, *lost]):
        job = lakehouse.start("--older-than-minutes", "0", *arguments, job="reconcile_files")
        assert job.wait() == 0, job.log_text()[-3000:]
        lakehouse.ingest("ingest_files")
        assert lakehouse.event_ids() == Counter(then)
    assert '"named": 1' in job.log_text()


def test_no_record_of_an_erased_player_is_left_whose_events_came_by_file(
    lakehouse: Lakehouse, landing: Landing
) -> None:
    _, annas = events(10, "Archery", gamer_id=ANNA)
    bens, of_ben = events(4, "Archery", gamer_id=BEN)
    landing.deliver("one.json", annas + of_ben)
    landing.deliver("two.json", events(3, "?!", gamer_id=ANNA)[1])
    lakehouse.ingest("ingest_files")
    assert lakehouse.reasons() == Counter({"unroutable": 3})

    request = ErasureRequest.new("operator", "archery", (ANNA,), Reach.ROWS)
    ErasureRecords(lakehouse.store).begin(request)
    erasure = LakeErasure(lakehouse.store, request, Failpoints())
    erasure.erase()
    backfill = lakehouse.start("silver/archery_events", SILVER_EVENTS, job="backfill")
    assert backfill.wait() == 0, backfill.log_text()

    assert erasure.left() == ()
    assert lakehouse.event_ids("silver/archery_events") == lakehouse.event_ids() == Counter(bens)
    assert lakehouse.reasons().total() == 0
    assert lakehouse.reconciliation().problems == []
