"""The settings of the ingest job."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Kill
from gamelake.model.options import (
    LineageOptions,
    TelemetryOptions,
    TraceOptions,
    lineage_options,
    telemetry_options,
    trace_options,
)
from gamelake.objects.settings import LakehouseSettings
from gamelake.schemas.limits import SchemaLimits, schema_limits
from gamelake.schemas.schema_cache import SchemaWait, schema_wait
from gamelake.streaming.dedup.window import DedupLimits
from gamelake.streaming.driver.flood import FloodLimit

_PORT, _HEARTBEAT = "GAMELAKE_METRICS_PORT", "GAMELAKE_HEARTBEAT_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """The settings of a job that ingests a topic.

    Attributes:
        lakehouse: where the tables are, and the access to them.
        kafka: how to connect.
        topic: the name of the topic.
        registry_url: of the schema registry.
        games_file: the games contract.
        stream: the name of the stream.
        max_offsets_per_trigger: the largest number of offsets of a batch.
        trigger_interval: the shortest time between the starts of two batches.
        records_per_task: the number of records for which one task is enough.
        chunk_records: the number of records from which a task writes its files.
        flood: the limit of dead letters.
        schema_wait: the limits of a task's wait for a missing schema.
        schema_limits: the limits of a schema that a task compiles.
        dedup: the limits of the deduplication window.
        telemetry: the metrics endpoint and the heartbeat file.
        lineage: the interval and the file of lineage events.
        traces: the share of events to trace.
        rules: the folder of the quality rules; None for no rules.
        files_stream: the name of the stream that reads files into the same tables.
        spark_jars: the folder of the jars for a local session; None if spark-submit or spark-defaults.conf has them.
        kill: where a test kills the process; None outside of tests.
    """

    lakehouse: LakehouseSettings
    kafka: KafkaAccess
    topic: str
    registry_url: str
    games_file: Path
    stream: str
    max_offsets_per_trigger: int
    trigger_interval: timedelta
    records_per_task: int
    chunk_records: int
    flood: FloodLimit
    schema_wait: SchemaWait
    schema_limits: SchemaLimits
    dedup: DedupLimits = field(default_factory=DedupLimits)
    telemetry: TelemetryOptions = field(default_factory=TelemetryOptions)
    lineage: LineageOptions = field(default_factory=LineageOptions)
    traces: TraceOptions = field(default_factory=TraceOptions)
    rules: Path | None = None
    files_stream: str = "ingest_files"
    spark_jars: Path | None = None
    kill: Kill | None = field(default=None)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            kafka=kafka_access(env),
            topic=env.required("GAMELAKE_TOPIC"),
            registry_url=env.required("GAMELAKE_REGISTRY_URL"),
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            stream=_stream_name(env.optional("GAMELAKE_STREAM", "ingest_events")),
            max_offsets_per_trigger=env.whole("GAMELAKE_MAX_OFFSETS_PER_TRIGGER", 1_000_000, 1, 10**9),
            trigger_interval=timedelta(seconds=env.number("GAMELAKE_TRIGGER_SECONDS", 0, 0, 86_400)),
            records_per_task=env.whole("GAMELAKE_RECORDS_PER_TASK", 100_000, 1, 10**9),
            chunk_records=env.whole("GAMELAKE_CHUNK_RECORDS", 500_000, 1, 10**8),
            flood=FloodLimit(
                env.number("GAMELAKE_FLOOD_SHARE", 0.5, 0, 1), env.whole("GAMELAKE_FLOOD_RECORDS", 10_000, 1, 10**9)
            ),
            schema_wait=schema_wait(env),
            schema_limits=schema_limits(env),
            dedup=DedupLimits(
                window=timedelta(seconds=env.whole("GAMELAKE_DEDUP_WINDOW_SECONDS", 600, 0, 86_400)),
                events=env.whole("GAMELAKE_DEDUP_MAX_EVENTS", 400_000_000, 1, 10**9),
                in_memory=env.whole("GAMELAKE_DEDUP_MEMORY_EVENTS", 20_000_000, 1, 10**9),
            ),
            telemetry=telemetry_options(env),
            lineage=lineage_options(env),
            traces=trace_options(env),
            rules=env.path("GAMELAKE_RULES"),
            files_stream=_stream_name(env.optional("GAMELAKE_FILES_STREAM", "ingest_files")),
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
            kill=failpoint_setting(env),
        )


def _stream_name(text: str) -> str:
    """Return a stream's name, which must also be a valid name of a folder in every store."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise SettingsError(f"GAMELAKE_STREAM is '{text}'; it must be made of letters, digits, _ and -")
    return text


def shared(variables: Mapping[str, str], job: str, number: int) -> Mapping[str, str]:
    """Return the variables of one job in a process that it shares with others.

    Args:
        variables: of the process.
        job: the name of the job, which becomes the suffix of its heartbeat file.
        number: of the job, which is added to its port.
    """
    changed = dict(variables)
    if (port := variables.get(_PORT, "")).isdigit():
        changed[_PORT] = str(int(port) + number)
    if file := variables.get(_HEARTBEAT):
        changed[_HEARTBEAT] = f"{file}.{job}"
    return changed
