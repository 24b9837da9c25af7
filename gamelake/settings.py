"""The settings of the jobs: the one place that reads the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.errors import SettingsError
from gamelake.failpoints import Kill
from gamelake.fanout.flood import FloodLimit
from gamelake.kafka import KafkaAccess
from gamelake.lake.credentials import shared_credentials
from gamelake.lake.store import Location
from gamelake.telemetry.options import TelemetryOptions
from gamelake.wire.schemas import SchemaWait

_S3_VARIABLES = {
    "GAMELAKE_S3_ENDPOINT": "AWS_ENDPOINT_URL",
    "GAMELAKE_S3_REGION": "AWS_REGION",
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN": "AWS_SESSION_TOKEN",
}


class Environment:
    """Variables by name, with errors that say which one is wrong and how."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def required(self, name: str) -> str:
        """A variable that has no sensible default."""
        value = self._variables.get(name, "")
        if not value:
            raise SettingsError(f"{name} is not set; docs/settings.md says what it is for")
        return value

    def optional(self, name: str, default: str) -> str:
        """A variable that may be left out."""
        return self._variables.get(name) or default

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """A number within bounds."""
        text = self.optional(name, str(default))
        try:
            value = float(text)
        except ValueError as error:
            raise SettingsError(f"{name} is '{text}', which is no number") from error
        if not least <= value <= most:
            raise SettingsError(f"{name} is {text}; it must be from {least:g} to {most:g}")
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self.number(name, default, least, most)
        if value != int(value):
            raise SettingsError(f"{name} is {value}; it must be a whole number")
        return int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakehouseSettings:
    """Where the tables are."""

    location: Location

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        uri = env.required("GAMELAKE_LAKEHOUSE").rstrip("/")
        if not uri.startswith(("file:///", "s3://")):
            raise SettingsError(f"GAMELAKE_LAKEHOUSE is '{uri}'; it must start with file:/// or s3://")
        if "%" in uri:
            # Hadoop takes a percent-encoded path to the letter and others decode it: there would be two lakehouses.
            raise SettingsError(f"GAMELAKE_LAKEHOUSE is '{uri}'; write its path as it is, without percent-encoding")
        return cls(location=Location(uri=uri, options=_s3_options(variables) if uri.startswith("s3://") else {}))


def _s3_options(variables: Mapping[str, str]) -> dict[str, str]:
    env = Environment(variables)
    file, profile = env.optional("AWS_SHARED_CREDENTIALS_FILE", ""), env.optional("AWS_PROFILE", "default")
    if file and not env.optional("AWS_ACCESS_KEY_ID", ""):
        variables = {**variables, **shared_credentials(Path(file), profile)}
    options = {option: variables[name] for name, option in _S3_VARIABLES.items() if variables.get(name)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """What the ingest job needs to know."""

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
    telemetry: TelemetryOptions = field(default_factory=TelemetryOptions)
    spark_jars: Path | None = None
    kill: Kill | None = field(default=None)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        jars = env.optional("GAMELAKE_SPARK_JARS", "")
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            kafka=_kafka(env),
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
            schema_wait=SchemaWait(
                patience=timedelta(seconds=env.number("GAMELAKE_SCHEMA_WAIT_SECONDS", 10, 0, 3_600)),
                ask_again_after=timedelta(seconds=env.number("GAMELAKE_SCHEMA_RETRY_SECONDS", 60, 0, 86_400)),
            ),
            telemetry=_telemetry(env),
            spark_jars=Path(jars) if jars else None,
            kill=_kill(env.optional("GAMELAKE_FAILPOINT", "")),
        )


def _kafka(env: Environment) -> KafkaAccess:
    return KafkaAccess.of(
        env.required("GAMELAKE_BOOTSTRAP_SERVERS"), env.optional("GAMELAKE_KAFKA_CREDENTIALS_FILE", "")
    )


def _telemetry(env: Environment) -> TelemetryOptions:
    port = env.whole("GAMELAKE_METRICS_PORT", 1, 1, 65_535) if env.optional("GAMELAKE_METRICS_PORT", "") else None
    heartbeat = env.optional("GAMELAKE_HEARTBEAT_FILE", "")
    return TelemetryOptions(
        metrics_port=port,
        metrics_host=env.optional("GAMELAKE_METRICS_HOST", "127.0.0.1"),
        heartbeat_file=Path(heartbeat) if heartbeat else None,
    )


def _stream_name(text: str) -> str:
    """A name that is a folder's name in every store."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise SettingsError(f"GAMELAKE_STREAM is '{text}'; it must be made of letters, digits, _ and -")
    return text


def _kill(text: str) -> Kill | None:
    try:
        return Kill.parse(text) if text else None
    except ValueError as error:
        raise SettingsError(f"GAMELAKE_FAILPOINT is '{text}': {error}") from error
