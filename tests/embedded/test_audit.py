"""The audit has each record once, whatever happens to its service, and the topic has none that was copied."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.model.naming import AUDIT_QUERIES, AUDIT_SUPPORT_CALLS
from tests.embedded.lakehouse import ROOT
from tests.support.eventually import eventually
from tests.support.process_table import anonymous_mib
from tests.support.scraping import scrape
from tools.embedded import EmbeddedKafka
from tools.embedded.ports import HOST, free_port

EVENTS = (ROOT / "tests/unit/audit/query_events.jsonl").read_bytes().splitlines()
# The container's limit (AUDIT_MEMORY in compose/.env), less a sixth for what the peak leaves out.
_LIMIT_MIB = 160
_AS_IN_COMPOSE = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}
# Nested without end, numbers and texts that no column can have, a time before the calendar.
ODD = [
    b"[" * 200_000,
    b'{"eventPayload": ' * 50_000,
    json.dumps({"status": 2**80}).encode(),
    b'{"key_id": "\\ud800"}',
    b'{"called_at": "0000-01-01T00:00:00Z"}',
]
_NONE: Mapping[str, str] = MappingProxyType({})
_BACKLOG, _LARGE = 20_000, 5_000_000


@dataclass(frozen=True, slots=True)
class Audit:
    """A lakehouse, two topics, and the service as a process."""

    folder: Path
    bootstrap_servers: str
    queries: str
    calls: str

    @property
    def log(self) -> str:
        return (self.folder / "audit.log").read_text()

    @contextmanager
    def running(
        self, settings: Mapping[str, str] = _NONE, *, may_fail: bool = False
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the service for the time of the block; one that may fail may end with a transient error."""
        environment = {
            **os.environ,
            "GAMELAKE_LAKEHOUSE": f"file://{self.folder}/lakehouse",
            "GAMELAKE_GAMES_FILE": str(ROOT / "contracts/games.yaml"),
            "GAMELAKE_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "GAMELAKE_AUDIT_QUERIES_TOPIC": self.queries,
            "GAMELAKE_AUDIT_SUPPORT_CALLS_TOPIC": self.calls,
            "GAMELAKE_AUDIT_SECONDS": "0.2",
            **settings,
        }
        with (self.folder / "audit.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.audit"], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        try:
            yield process
            process.terminate()
            assert process.wait(60) in (0, -signal.SIGKILL, *([4] if may_fail else [])), self.log
        finally:
            process.kill()
            process.wait()

    def send(self, topic: str, values: list[bytes]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "message.max.bytes": _LARGE + 10_000})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(60) == 0

    def rows(self, table: str) -> list[dict[str, object]]:
        """All rows of a table, in the order of the topic."""
        try:
            found = DeltaTable(f"file://{self.folder}/lakehouse/{table}").to_pyarrow_table().to_pylist()
        except TableNotFoundError:
            return []
        return sorted(found, key=lambda row: row["kafka_offset"])

    def offsets(self, table: str) -> Counter[object]:
        """Return how many rows there are of each offset."""
        return Counter(row["kafka_offset"] for row in self.rows(table))

    def first_offset(self) -> int:
        """The first offset that the topic of queries still has."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "test"})
        try:
            first, _ = consumer.get_watermark_offsets(TopicPartition(self.queries, 0), timeout=20)
            return int(first)
        finally:
            consumer.close()


@pytest.fixture
def audit(tmp_path: Path, kafka: EmbeddedKafka, topic: Callable[..., str]) -> Audit:
    config = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(2 * _LARGE)}
    (tmp_path / "audit.log").touch()
    return Audit(tmp_path, kafka.bootstrap_servers, topic(1, config), topic(1, config))


def once(records: int) -> Counter[int]:
    """Each of the first offsets once."""
    return Counter(range(records))


@pytest.mark.parametrize("step", [pytest.param("after_audit_file", marks=pytest.mark.slow), "after_audit_commit"])
def test_each_query_is_one_row_though_the_service_is_killed(audit: Audit, step: str) -> None:
    audit.send(audit.queries, EVENTS)
    with audit.running():
        eventually(lambda: audit.offsets(AUDIT_QUERIES) == once(4), timeout=120)
    audit.send(audit.queries, EVENTS)
    with audit.running({"GAMELAKE_FAILPOINT": step}) as killed:
        assert killed.wait(120) == -signal.SIGKILL
    audit.send(audit.queries, EVENTS)

    with audit.running():
        eventually(lambda: sum(audit.offsets(AUDIT_QUERIES).values()) >= 12, timeout=120)

    assert audit.offsets(AUDIT_QUERIES) == once(12)


def test_a_record_of_another_format_stops_nothing_and_is_kept_as_masked_text(audit: Audit) -> None:
    call = {
        "called_at": "2026-11-25T12:00:00Z",
        "key_id": "archery-support",
        "role": "support",
        "game": "archery_duel",
        "action": "export",
        "pseudonym": "0" * 32,
        "status": 200,
    }
    records = [b"no JSON, of 'Anna'", b"", b'{"key_id": 7}', json.dumps(call).encode(), b"\xff\xfe", *ODD]
    audit.send(audit.calls, records)
    audit.send(audit.queries, [*ODD, EVENTS[1].replace(b'"outputRows":1', b'"outputRows":' + b"9" * 30)])

    with audit.running():
        eventually(lambda: len(audit.rows(AUDIT_SUPPORT_CALLS)) == len(records), timeout=120)
        eventually(lambda: audit.offsets(AUDIT_QUERIES) == once(len(ODD) + 1), timeout=120)

    rows = audit.rows(AUDIT_SUPPORT_CALLS)
    assert [row["unreadable"] for row in rows][:2] == ["no JSON, of '***'", ""]
    assert [row["key_id"] for row in rows if row["unreadable"] is None] == ["archery-support"]
    assert "audit_records_unreadable" in audit.log


def test_what_was_typed_is_neither_in_the_table_nor_any_longer_in_the_topic(audit: Audit) -> None:
    typed = f"anna.{uuid.uuid4().hex}@example.com"
    audit.send(audit.queries, [EVENTS[0].replace(b"anna@example.com", typed.encode())])
    with audit.running():
        eventually(lambda: audit.first_offset() == 1, timeout=120)

    assert [row["query_id"] for row in audit.rows(AUDIT_QUERIES)] != [None]
    files = [path for path in (audit.folder / "lakehouse").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if typed.encode() in path.read_bytes()]
    assert typed not in str(audit.rows(AUDIT_QUERIES))


def test_records_that_kafka_has_deleted_before_are_reported_and_the_rest_is_copied(audit: Audit) -> None:
    audit.send(audit.queries, EVENTS)
    with audit.running():
        eventually(lambda: audit.first_offset() == 4, timeout=120)
    audit.send(audit.queries, EVENTS)
    delete_before(audit, 6)

    with audit.running():
        eventually(lambda: 7 in audit.offsets(AUDIT_QUERIES), timeout=120)

    assert audit.offsets(AUDIT_QUERIES) == Counter([0, 1, 2, 3, 6, 7])
    assert "audit_offset_missing" in audit.log


def delete_before(audit: Audit, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": audit.bootstrap_servers})
    for answer in admin.delete_records([TopicPartition(audit.queries, 0, offset)]).values():
        answer.result(20)


def test_a_second_process_adds_no_row_a_second_time(audit: Audit) -> None:
    with audit.running(may_fail=True) as first, audit.running(may_fail=True) as second:
        eventually(lambda: audit.log.count("audit_copy_started") == 4, timeout=120)
        for _ in range(5):
            audit.send(audit.queries, EVENTS)
        eventually(lambda: sum(audit.offsets(AUDIT_QUERIES).values()) >= 20, timeout=120)
        # A slow process may begin to read only after the other one has committed, and even deleted, all records.
        eventually(lambda: [first.poll(), second.poll()].count(None) == 1, timeout=120)

    assert audit.offsets(AUDIT_QUERIES) == once(20)
    assert "another process writes audit/queries" in audit.log or "the audit's topics can't be copied" in audit.log


@pytest.mark.slow
def test_a_backlog_is_copied_within_the_containers_memory(audit: Audit) -> None:
    large = EVENTS[0].replace(b"SELECT", b"SELECT 'x' || " + b"y" * _LARGE + b", ", 1)
    for _ in range(4):
        audit.send(audit.queries, [*(EVENTS * (_BACKLOG // 16)), large])
    with audit.running(_AS_IN_COMPOSE) as process:
        peaks: list[float] = []

        def is_copied() -> bool:
            peaks.append(anonymous_mib({process.pid}))
            return audit.first_offset() == _BACKLOG + 4

        eventually(is_copied, timeout=180)

    assert audit.offsets(AUDIT_QUERIES) == once(_BACKLOG + 4)
    assert max(peaks) < _LIMIT_MIB, f"{max(peaks):.0f} MiB"


def test_a_table_is_as_late_as_its_oldest_record_however_often_the_service_starts(audit: Audit) -> None:
    audit.send(audit.queries, EVENTS)
    sent = time.time()
    port = free_port()

    for _ in range(2):
        with audit.running({"GAMELAKE_AUDIT_SECONDS": "300", "GAMELAKE_METRICS_PORT": str(port)}) as service:
            eventually(lambda: 0 < complete_until(port) < sent + 1, timeout=120)
            service.kill()

    assert audit.rows(AUDIT_QUERIES) == []


def complete_until(port: int) -> float:
    """The time up to which the table has all records, as the service exports it; 0 while it does not respond."""
    try:
        scraped = scrape(f"http://{HOST}:{port}/metrics")
    except OSError:
        return 0
    return max(scraped.values("gamelake_audit_last_complete_timestamp_seconds", table="queries"), default=0)
