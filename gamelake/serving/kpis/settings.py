"""The settings of the KPI query."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.failpoints import Kill
from gamelake.model.options import LineageOptions, TelemetryOptions, lineage_options, telemetry_options
from gamelake.serving.kpis.definitions import ExactUpTo
from gamelake.storage.settings import LakehouseSettings

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class KpiSettings:
    """What the KPI query needs to know."""

    lakehouse: LakehouseSettings
    watermark: timedelta = timedelta(minutes=180)
    trigger_interval: timedelta = timedelta(seconds=15)
    max_bytes_per_trigger: int = 64 * _MIB
    partitions: int = 2
    exact: ExactUpTo = field(default_factory=ExactUpTo)
    telemetry: TelemetryOptions = field(default_factory=TelemetryOptions)
    lineage: LineageOptions = field(default_factory=LineageOptions)
    spark_jars: Path | None = None
    kill: Kill | None = None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            watermark=timedelta(minutes=env.whole("GAMELAKE_KPIS_WATERMARK_MINUTES", 180, 0, 10_080)),
            trigger_interval=timedelta(seconds=env.number("GAMELAKE_KPIS_TRIGGER_SECONDS", 15, 0, 3_600)),
            max_bytes_per_trigger=env.whole("GAMELAKE_KPIS_MAX_MIB_PER_TRIGGER", 64, 1, 65_536) * _MIB,
            partitions=env.whole("GAMELAKE_KPIS_PARTITIONS", 2, 1, 1_000),
            exact=ExactUpTo(
                players=env.whole("GAMELAKE_KPIS_EXACT_PLAYERS", 100_000, 100, 10**9),
                sessions=env.whole("GAMELAKE_KPIS_EXACT_SESSIONS", 20_000, 100, 10**9),
            ),
            telemetry=telemetry_options(env),
            lineage=lineage_options(env),
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
            kill=failpoint_setting(env),
        )
