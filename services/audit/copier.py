"""Copies the audit's topics into their tables, each record once, and deletes what it has copied from the topics.

A topic has a record's text as it was typed, its table has it masked: so copied records are deleted from the topic.
Memory does not grow with the backlog: the client's queue is bounded in bytes, and so is what is committed at once.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

from confluent_kafka import KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import KafkaUnavailableError, StartupError, TransientError
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.observability.metrics.endpoint import Heartbeat
from services.audit.maintenance import TableMaintenance
from services.audit.metrics import AuditMetrics
from services.audit.settings import AuditSettings
from services.audit.tables import AuditAppender, AuditTable, Row
from services.bounded_consumer import BoundedConsumer

log = event_logger(__name__)

_RECORDS_AT_ONCE = 1_000
# Small files are compacted after this many commits at the latest: the memory of a compaction grows with their number.
_COMMITS_BETWEEN_COMPACTIONS = 500
_REQUEST_SECONDS = 10.0
# Between two measurements of the lag, which also delete copied records.
_LAG_SECONDS = 10.0


@dataclass(slots=True)
class TopicCopy:
    """One topic on its way into its table: rows that are not committed yet.

    Attributes:
        position: the offset of the next record.
        committed: the offset up to which the table has all records.
        deleted: the offset up to which the topic's records are deleted.
        commits: since the last maintenance.
    """

    table: AuditTable
    appender: AuditAppender
    position: int
    committed: int
    deleted: int = 0
    commits: int = 0
    rows: list[Row] = field(default_factory=list)
    bytes: int = 0
    begun_at: float = 0.0

    @property
    def name(self) -> str:
        """The table's name without its layer, as metrics have it."""
        return self.table.path.rpartition("/")[2]

    def add(self, message: Message) -> None:
        """Take a record."""
        value = message.value() or b""
        value = value.encode() if isinstance(value, str) else value
        if not self.rows:
            self.begun_at = time.monotonic()
        self.rows.append(self.table.row_of(message.offset() or 0, _time_of(message), value))
        self.bytes += len(value)
        self.position = (message.offset() or 0) + 1

    def commit(self) -> tuple[int, int]:
        """Commit the rows. Return their number, and that of the unreadable ones among them."""
        self.appender.append(self.rows, self.position)
        counts = len(self.rows), sum("unreadable" in row for row in self.rows)
        self.rows, self.bytes, self.committed = [], 0, self.position
        self.commits += 1
        return counts


class AuditCopier:
    """Copies topics until it is stopped."""

    def __init__(self, settings: AuditSettings, tables: list[AuditTable], metrics: AuditMetrics) -> None:
        """Connect to Kafka and open the tables.

        Raises:
            KafkaUnavailableError: Kafka does not respond.
            StartupError: a topic is missing, or has several partitions.
        """
        self._settings, self._metrics = settings, metrics
        self._heartbeat = Heartbeat(settings.telemetry.heartbeat_file)
        self._admin = AdminClient({**settings.kafka.for_clients(), "log_level": 0})
        # An offset that Kafka does not have is an error: to continue anywhere else would lose records.
        self._consumer = BoundedConsumer(settings.kafka, {"group.id": "audit", "auto.offset.reset": "error"})
        self._lag_at = self._maintained_at = float("-inf")
        self._copies = {table.topic: self._begin(table) for table in tables}

    def run(self, stop: Event) -> None:
        """Copy until `stop` is set.

        Raises:
            KafkaUnavailableError: the client has a fatal error, or Kafka has no longer what is to be read.
            TransientError: another process writes a table.
        """
        self._consumer.assign([TopicPartition(topic, 0, copy.position) for topic, copy in self._copies.items()])
        try:
            while not stop.is_set():
                for message in self._consumer.records(_RECORDS_AT_ONCE):
                    self._add(message)
                for copy in self._copies.values():
                    if self._is_due(copy):
                        self._commit(copy)
                self._measure_lag()
                self._maintain()
                self._heartbeat.beat()
            for copy in self._copies.values():
                self._commit(copy)
        except KafkaException as error:
            raise KafkaUnavailableError(f"the audit's topics can't be copied: {error}") from error
        finally:
            self._consumer.close()

    def _begin(self, table: AuditTable) -> TopicCopy:
        """Find the position to continue from with a topic."""
        topic_id = _topic_id(self._admin, self._settings.kafka, table.topic)
        appender = AuditAppender(self._settings.lakehouse, table, topic_id, Failpoints(self._settings.kill))
        try:
            first, end = self._consumer.get_watermark_offsets(TopicPartition(table.topic, 0), timeout=_REQUEST_SECONDS)
        except KafkaException as error:
            raise KafkaUnavailableError(f"the topic '{table.topic}' can't be read: {error}") from error
        known = first if appender.position is None else appender.position
        copy = TopicCopy(table, appender, known, known, first)
        self._metrics.initialize(copy.name)
        if not first <= known <= end:
            log.error(
                "audit_offset_missing",
                topic=table.topic,
                offset=known,
                first=first,
                end=end,
                action="continues at the first record; if Kafka deleted records before, they are in no table",
            )
            self._metrics.lost(copy.name, max(first - known, 0))
            copy.position = copy.committed = first
        log.info("audit_copy_started", topic=table.topic, table=table.path, offset=copy.position)
        return copy

    def _add(self, message: Message) -> None:
        """Take a record; commit early what becomes large."""
        copy = self._copies[message.topic() or ""]
        is_oldest = not copy.rows
        copy.add(message)
        if is_oldest:
            self._metrics.complete_until(copy.name, _time_of(message))
        if copy.bytes >= self._settings.buffer_bytes or len(copy.rows) >= _RECORDS_AT_ONCE:
            self._commit(copy)

    def _is_due(self, copy: TopicCopy) -> bool:
        return bool(copy.rows) and time.monotonic() - copy.begun_at >= self._settings.interval.total_seconds()

    def _commit(self, copy: TopicCopy) -> None:
        if copy.rows:
            rows, unreadable = copy.commit()
            self._metrics.committed(copy.name, rows, unreadable)
            if unreadable:
                log.warning(
                    "audit_records_unreadable", topic=copy.table.topic, records=unreadable, action="kept as text"
                )
            self._heartbeat.beat()

    def _measure_lag(self) -> None:
        if time.monotonic() - self._lag_at < _LAG_SECONDS:
            return
        self._lag_at = time.monotonic()
        for topic, copy in self._copies.items():
            try:
                _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_REQUEST_SECONDS)
                self._metrics.behind(copy.name, max(end - copy.committed, 0))
                self._delete_copied(copy)
            except KafkaException as error:
                log.warning("audit_lag_unknown", topic=topic, error=error, action="tries again")

    def _delete_copied(self, copy: TopicCopy) -> None:
        if copy.committed > copy.deleted:
            copied = TopicPartition(copy.table.topic, 0, copy.committed)
            for answer in self._admin.delete_records([copied], request_timeout=_REQUEST_SECONDS).values():
                answer.result(_REQUEST_SECONDS)
            copy.deleted = copy.committed

    def _maintain(self) -> None:
        most_commits = max(copy.commits for copy in self._copies.values())
        is_due = time.monotonic() - self._maintained_at >= self._settings.maintenance_interval.total_seconds()
        if not is_due and most_commits < _COMMITS_BETWEEN_COMPACTIONS:
            return
        self._maintained_at = time.monotonic()
        for copy in self._copies.values():
            if not copy.appender.exists:
                self._metrics.maintained(copy.name)
                continue
            maintenance = TableMaintenance(
                location=self._settings.lakehouse, table=copy.table.path, retention=self._settings.retention
            )
            try:
                done = maintenance.run()
            except (DeltaError, BaseError, OSError, TransientError) as error:
                log.warning("audit_maintenance_failed", table=copy.table.path, error=error, action="tries again")
            else:
                self._metrics.maintained(copy.name)
                if done.compacted or done.deleted:
                    log.info(
                        "audit_maintained",
                        table=copy.table.path,
                        compacted=len(done.compacted),
                        deleted=len(done.deleted),
                    )
            copy.appender.reopen()
            copy.commits = 0
            self._heartbeat.beat()


def _time_of(message: Message) -> datetime:
    """When Kafka took a record."""
    return datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)


def _topic_id(admin: AdminClient, kafka: KafkaAccess, topic: str) -> str:
    """The id that Kafka gave the topic at its creation.

    Raises:
        KafkaUnavailableError: Kafka does not respond.
        StartupError: the topic is missing, or has several partitions.
    """
    try:
        found = admin.describe_topics(TopicCollection([topic]), request_timeout=_REQUEST_SECONDS)[topic].result(
            _REQUEST_SECONDS
        )
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise StartupError(
                f"the topic '{topic}' does not exist at {kafka.bootstrap_servers}; create-topics creates it"
            ) from error
        raise KafkaUnavailableError(f"the topic '{topic}' can't be described: {error}") from error
    if len(found.partitions) != 1:
        raise StartupError(f"the topic '{topic}' has {len(found.partitions)} partitions; the audit copies one")
    return str(found.topic_id)
