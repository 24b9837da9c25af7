"""Rows 16 to 18 of the fault matrix: checkpoints that are lost or damaged, topics that are made again."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # the stubs lack it

from gamelake.model.failpoints import Failpoint
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender
from tools.embedded.kafka import create_topic, delete_topic

STARTUP, DATA_LOSS = 2, 3


def checkpoint(lakehouse: Lakehouse, generation: int) -> Path:
    return lakehouse.directory / f"lake/_gamelake/streams/ingest_events/checkpoints/{generation:06d}"


def test_a_deleted_checkpoint_is_rebuilt_from_the_manifests(lakehouse: Lakehouse, sender: Sender) -> None:
    sender.send_events(60, "Archery")
    lakehouse.ingest()
    sender.send_events(60, "Bingo")
    lakehouse.ingest_killed(Failpoint.AFTER_TABLE_COMMIT, 2)
    shutil.rmtree(checkpoint(lakehouse, 0))
    sender.send_events(60, "Archery")

    lakehouse.ingest()

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []
    assert checkpoint(lakehouse, 1).is_dir()


@pytest.mark.slow
def test_a_truncated_checkpoint_is_named_and_rebuilt_on_request(lakehouse: Lakehouse, sender: Sender) -> None:
    sender.send_events(60, "Archery")
    lakehouse.ingest()
    (checkpoint(lakehouse, 0) / "offsets" / "0").write_bytes(b"")
    sender.send_events(60, "Bingo")

    job = lakehouse.start("--available-now")

    assert job.wait() == STARTUP
    assert "checkpoints/000000/offsets/0" in job.log_text()
    assert "rebuild_checkpoint" in job.log_text()

    assert lakehouse.start(job="rebuild_checkpoint").wait() == 0
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


def test_a_recreated_topic_stops_the_stream_until_its_use_is_confirmed(lakehouse: Lakehouse, sender: Sender) -> None:
    sender.send_events(60, "Archery")
    lakehouse.ingest()
    delete_topic(lakehouse.bootstrap_servers, lakehouse.topic)
    create_topic(lakehouse.bootstrap_servers, lakehouse.topic, 2)
    # More than before: offsets alone would be valid, and the first 60 records would be skipped without an error.
    sender.send_events(90, "Bingo")

    job = lakehouse.start("--available-now")

    assert job.wait() == DATA_LOSS
    assert "was deleted and created again" in job.log_text()

    assert lakehouse.start("--new-topic", job="rebuild_checkpoint").wait() == 0
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_records_deleted_by_retention_stop_the_stream_until_they_are_skipped(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    kept = sender.send_events(60, "Archery")
    lakehouse.ingest()
    sender.send_events(60, "Archery")
    delete_records(lakehouse)
    kept += sender.send_events(30, "Bingo")

    job = lakehouse.start("--available-now")

    assert job.wait() == DATA_LOSS
    assert "--skip-lost" in job.log_text()

    assert lakehouse.start("--skip-lost", job="rebuild_checkpoint").wait() == 0
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(kept)
    assert lakehouse.reconciliation().lost_offsets == 60
    assert lakehouse.reconciliation().problems == []


def delete_records(lakehouse: Lakehouse) -> None:
    """Have Kafka delete all that the topic holds now, as retention would."""
    admin = AdminClient({"bootstrap.servers": lakehouse.bootstrap_servers, "log_level": 0})
    latest = {
        TopicPartition(lakehouse.topic, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for partition in range(2)
    }
    ends = [
        TopicPartition(lakehouse.topic, place.partition, answer.result(30).offset)
        for place, answer in admin.list_offsets(latest).items()
    ]
    for answer in admin.delete_records(ends).values():
        answer.result(30)
