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
from gamelake.schemas.limits import SchemaLimits, schema_limits
from gamelake.schemas.schema_cache import SchemaWait, schema_wait
from gamelake.storage.settings import LakehouseSettings
from gamelake.streaming.dedup_window import DedupLimits
from gamelake.streaming.flood import FloodLimit

_PORT, _HEARTBEAT = "GAMELAKE_METRICS_PORT", "GAMELAKE_HEARTBEAT_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """The settings of a job that ingests a topic; `rules` is the folder of the rules, None for no rules."""

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
    """A stream name that is also a valid folder name in every store."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise SettingsError(f"GAMELAKE_STREAM is '{text}'; it must be made of letters, digits, _ and -")
    return text


def shared(variables: Mapping[str, str], job: str, number: int) -> Mapping[str, str]:
    """The variables of one job in a shared process: `number` is added to its port, `.job` to its heartbeat file."""
    changed = dict(variables)
    if (port := variables.get(_PORT, "")).isdigit():
        changed[_PORT] = str(int(port) + number)
    if file := variables.get(_HEARTBEAT):
        changed[_HEARTBEAT] = f"{file}.{job}"
    return changed
