"""The settings of the job that refreshes the gold tables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.failpoints import Kill
from gamelake.model.options import LineageOptions, TelemetryOptions, lineage_options, telemetry_options
from gamelake.objects.settings import LakehouseSettings
from gamelake.schemas.event_schemas import registry_writer


@dataclass(frozen=True, slots=True)
class SegmentsTopic:
    """The topic of players' segments, and how to reach Kafka and the registry.

    Attributes:
        name: the topic's name.
        kafka: how to reach Kafka.
        registry_url: the registry.
        registry_writer: the credentials for registering schemas; None if the registry accepts them from any client.
    """

    name: str
    kafka: KafkaAccess
    registry_url: str
    registry_writer: ServerCredentials | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSettings:
    """The settings of the job that refreshes the gold tables.

    Attributes:
        lakehouse: the lakehouse and how to access it.
        games_file: the games contract; the metrics contract is in the same folder.
        telemetry: the metrics endpoint and the heartbeat file.
        lineage: the interval of lineage events, and the file for copies.
        spark_jars: the folder with Spark's jars for a local session; None if spark-submit configures the session.
        segments: the topic of players' segments; None if they are not published.
        kill: the failpoint at which a test ends the process; None outside tests.
    """

    lakehouse: LakehouseSettings
    games_file: Path
    telemetry: TelemetryOptions
    lineage: LineageOptions = field(default_factory=LineageOptions)
    spark_jars: Path | None = None
    segments: SegmentsTopic | None = None
    kill: Kill | None = None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings from environment variables.

        Args:
            variables: the variables by name.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            telemetry=telemetry_options(env),
            lineage=lineage_options(env),
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
            segments=_segments_topic(env),
            kill=failpoint_setting(env),
        )


def _segments_topic(env: Environment) -> SegmentsTopic | None:
    name = env.optional("GAMELAKE_SEGMENTS_TOPIC", "")
    if not name:
        return None
    return SegmentsTopic(name, kafka_access(env), env.required("GAMELAKE_REGISTRY_URL"), registry_writer(env))
