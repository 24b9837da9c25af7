"""Examines a lakehouse: its retentions, its streams, its leases, its tables and its backups.

Prints one PASS, WARN or FAIL line for each check, with a remedy, or one JSON document. Exits with 0 if nothing FAILs, 1
if something does, 2 if the lakehouse can't be read. It changes nothing and reads no data: `make verify` reconciles the
tables. Settings come from GAMELAKE_* variables (docs/settings.md); without GAMELAKE_BOOTSTRAP_SERVERS no Kafka.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from confluent_kafka import KafkaException

from gamelake.command import command_parser, print_result
from gamelake.contract.games import load_games
from gamelake.delta.listing import appended_tables, stream_names, table_paths
from gamelake.kafka import KafkaAccess
from gamelake.ledger.generations import Generations
from gamelake.model.errors import CheckpointError, GamelakeError, StoreError
from gamelake.objects.store import Store
from gamelake.observability.health import (
    HealthFinding,
    StreamState,
    any_failed,
    examine_clocks,
    examine_held_tables,
    examine_leases,
    examine_stream,
    examine_tables,
    passed,
    waiting_and_lost,
    warned,
)
from gamelake.observability.metrics.topic_window import TopicWindow
from gamelake.observability.retention_health import examine_backups, examine_retentions, shortest_log, topic_retention
from gamelake.observability.settings import DoctorSettings
from gamelake.program import FAILED, OK, run
from gamelake.recovery.backup_records import BackupRecords
from gamelake.streaming.driver.stream import Stream


def main() -> int:
    """Examine the lakehouse, and print the findings."""
    parser = command_parser(__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")
    arguments = parser.parse_args()
    findings: list[HealthFinding] = []
    for finding in Examination.of(DoctorSettings.from_env()).findings():
        findings.append(finding)
        if not arguments.json:
            print(finding, flush=True)
    if arguments.json:
        print_result(findings)
    return FAILED if any_failed(findings) else OK


@dataclass(frozen=True, slots=True)
class KafkaState:
    """The records that Kafka holds of a topic: first and end offset by partition.

    `trouble` is why something is missing.
    """

    trouble: str = ""
    retention: timedelta | None = None
    topic_id: str = ""
    held: Mapping[int, tuple[int, int]] | None = None


def read_kafka(kafka: KafkaAccess | None, topic: str) -> KafkaState:
    """Read the state of a topic; empty without access to Kafka."""
    if kafka is None:
        return KafkaState()
    state = KafkaState()
    try:
        window = TopicWindow(kafka, topic)
        state = replace(state, topic_id=window.topic_id())
        held = {partition: (span.earliest, span.end) for partition, span in window.spans().items()}
        window.close()
        state = replace(state, held=held)
        return replace(state, retention=topic_retention(kafka, topic))
    except (GamelakeError, KafkaException) as error:
        return replace(state, trouble=str(error))


@dataclass(frozen=True, slots=True)
class Examination:
    """An examination of a lakehouse."""

    settings: DoctorSettings
    store: Store
    kafka: Mapping[str, KafkaState]
    now: datetime

    @classmethod
    def of(cls, settings: DoctorSettings) -> "Examination":
        """Open the lakehouse.

        Raises:
            StoreError: no stream has written there yet.
        """
        store = Store(settings.lakehouse.location)
        histories = [Generations(store, name).all() for name in stream_names(store)]
        # A topic of an earlier generation may have been deleted.
        topics = sorted({generations[-1].topic for generations in histories if generations})
        if not topics:
            raise StoreError(f"no stream has written to {store.location.uri} yet: there is nothing to examine")
        return cls(settings, store, {each: read_kafka(settings.kafka, each) for each in topics}, datetime.now(UTC))

    def findings(self) -> Iterator[HealthFinding]:
        """Yield all findings, check by check."""
        tables, policy = table_paths(self.store), load_games(self.settings.games_file).maintenance
        for topic, kafka in self.kafka.items():
            if kafka.trouble:
                yield warned(
                    "kafka", f"the state of {topic} is incomplete ({kafka.trouble})", "check with make ps that it runs"
                )
        # Gold tables are not restored but rebuilt, so their logs may be kept for a shorter time.
        logs = shortest_log(self.store, appended_tables(self.store))
        retentions = [each.retention for each in self.kafka.values() if each.retention is not None]
        yield from examine_retentions(policy, logs, min(retentions, default=None))
        for name in stream_names(self.store):
            yield from examine_stream(self._stream(name), self.now)
        yield from examine_clocks(self.store)
        yield from examine_leases(self.store, self.now)
        yield from examine_tables(self.store, tables)
        yield from examine_held_tables(self.store)
        yield from examine_backups(BackupRecords(self.store).times(), policy, self.now, self._begun())
        yield passed("reconciliation", "run make verify while the stream is stopped")

    def _begun(self) -> datetime:
        generations = [each for name in stream_names(self.store) for each in Generations(self.store, name).all()]
        return min((datetime.fromisoformat(each.created_at) for each in generations), default=self.now)

    def _stream(self, name: str) -> StreamState:
        generations = Generations(self.store, name).all()
        stream = Stream(self.store, name, generations[-1].topic if generations else "")
        last = stream.last_manifest()
        state = StreamState(
            name=name,
            batches=0 if last is None else last.batch_id + 1,
            last_batch_at=None if last is None else datetime.fromisoformat(last.written_at),
        )
        if not generations:
            return state
        try:
            positions = stream.positions(generations[-1])
        except CheckpointError as error:
            return replace(state, trouble=str(error))
        kafka = self.kafka[generations[-1].topic]
        if kafka.held is None:
            return state
        waiting, lost = waiting_and_lost(positions, kafka.held)
        same = generations[-1].topic_id == kafka.topic_id
        return replace(state, waiting=waiting, lost=lost if same else 0, same_topic=same)


if __name__ == "__main__":
    run(main)
