"""Do the retentions that a lakehouse really has fit together, and are its backups young enough?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as NoAnswerError
from datetime import datetime, timedelta

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the stubs do not export all of them
    AdminClient,
    ConfigResource,
    ResourceType,
)
from deltalake.exceptions import DeltaError

from gamelake.contract.games import MaintenancePolicy
from gamelake.delta.tables import open_table
from gamelake.kafka import KafkaAccess
from gamelake.maintenance.retentions import FOR_EVER, RetentionKind, contradictions, promised
from gamelake.model.errors import GamelakeError, KafkaUnavailableError
from gamelake.objects.store import Store
from gamelake.observability.health import HealthFinding, failed, passed, warned

_ANSWER_SECONDS = 10.0
# Longer than librdkafka's own time-out, whose error says why.
_RESULT_SECONDS = 2 * _ANSWER_SECONDS


def topic_retention(kafka: KafkaAccess, topic: str) -> timedelta:
    """Return the topic's own `retention.ms`, or the broker's if it has none.

    Raises:
        KafkaUnavailableError: Kafka does not answer, refuses, or has no such topic.
    """
    # librdkafka prints a line for every attempt to connect.
    admin = AdminClient({**kafka.for_clients(), "log_level": 0})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        (answer,) = admin.describe_configs([resource], request_timeout=_ANSWER_SECONDS).values()
        milliseconds = int(answer.result(_RESULT_SECONDS)["retention.ms"].value)
    except (KafkaException, NoAnswerError) as error:
        raise KafkaUnavailableError(
            f"Kafka does not report how long it keeps '{topic}': {error}. The user needs the right to describe the "
            "topic's settings"
        ) from error
    return FOR_EVER if milliseconds < 0 else timedelta(milliseconds=milliseconds)


_RETENTIONS, _BACKUPS = "retentions", "backups"
# What Delta keeps of a log where a table says nothing.
DELTAS_LOG_RETENTION = timedelta(days=30)
_LOG_RETENTION = "delta.logRetentionDuration"
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# A backup that is late by as much as this was not made at all.
_LATE = 2


def examine_retentions(policy: MaintenancePolicy, logs: timedelta, kafka: timedelta | None) -> list[HealthFinding]:
    """Hold all spans against each other; `kafka` is None where Kafka did not report it."""
    spans = promised(policy) | {RetentionKind.LOGS: min(logs, DELTAS_LOG_RETENTION)}
    if kafka is not None:
        spans[RetentionKind.KAFKA] = kafka
    found = contradictions(spans)
    remedy = "change maintenance: in contracts/games.yaml, or compose/kafka/topics.yaml (docs/reference/storage.md)"
    if found:
        return [failed(_RETENTIONS, each, remedy) for each in found]
    return [passed(_RETENTIONS, f"{', '.join(sorted(spans))} fit together")]


def shortest_log(store: Store, tables: Iterable[str]) -> timedelta:
    """Return the shortest time that a cleaner, which follows the tables' own properties, keeps the log of a table."""
    spans = (_log_retention(_properties(store, table)) for table in tables)
    return min((span for span in spans if span is not None), default=DELTAS_LOG_RETENTION)


def _properties(store: Store, table: str) -> Mapping[str, str | None]:
    try:
        return open_table(store.location, table).metadata().configuration
    except (DeltaError, GamelakeError, ValueError):
        return {}  # said of the table itself


def _log_retention(properties: Mapping[str, str | None]) -> timedelta | None:
    """A duration as Delta writes it, such as `interval 30 days`."""
    words = (properties.get(_LOG_RETENTION) or "").removeprefix("interval ").split()
    pairs = list(zip(words[::2], words[1::2], strict=False))
    if not pairs or any(not number.isdigit() or unit.rstrip("s") not in _UNITS for number, unit in pairs):
        return None
    return timedelta(seconds=sum(int(number) * _UNITS[unit.rstrip("s")] for number, unit in pairs))


def examine_backups(
    made: Sequence[datetime], policy: MaintenancePolicy, now: datetime, begun: datetime
) -> Iterator[HealthFinding]:
    """Examine whether there are backups, and the newest is young enough; `begun` is how old the lakehouse is."""
    if not made:
        if now - begun < policy.backup_interval:
            yield passed(_BACKUPS, "none yet, and the lakehouse is younger than the time between two")
        else:
            yield warned(_BACKUPS, "there is none", "make backup")
        return
    age = now - max(made)
    found = f"{len(made)}, the newest {_hours(age)} old"
    if age > _LATE * policy.backup_interval:
        yield failed(_BACKUPS, f"{found}, though one is due every {_hours(policy.backup_interval)}", "make backup")
    elif age > policy.backup_interval:
        yield warned(_BACKUPS, f"{found}, and the next one is due", "make backup")
    else:
        yield passed(_BACKUPS, found)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3_600:.1f} h"
