"""What a person may ask of a job's telemetry, by the variables that all jobs share."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gamelake.model.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryOptions:
    """Where the metrics are served, None for nowhere, and which file is touched as a sign of life, None for none."""

    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    heartbeat_file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether anybody asked for anything."""
        return self.metrics_port is not None or self.heartbeat_file is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOptions:
    """How often a job that runs on tells of itself again, zero for never; and a file for the events besides."""

    every: timedelta = timedelta(hours=1)
    file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether anything is told at all."""
        return self.every > timedelta()


def telemetry_options(env: Environment) -> TelemetryOptions:
    """Where the metrics are served, and the file that is touched as a sign of life.

    Raises:
        SettingsError: a variable is malformed.
    """
    port = env.whole("GAMELAKE_METRICS_PORT", 1, 1, 65_535) if env.optional("GAMELAKE_METRICS_PORT", "") else None
    return TelemetryOptions(
        metrics_port=port,
        metrics_host=env.optional("GAMELAKE_METRICS_HOST", "127.0.0.1"),
        heartbeat_file=env.path("GAMELAKE_HEARTBEAT_FILE"),
    )


def lineage_options(env: Environment) -> LineageOptions:
    """How often a job tells of itself, and the file that takes the events besides the table."""
    file = env.optional("GAMELAKE_LINEAGE_FILE", "")
    return LineageOptions(
        every=timedelta(seconds=env.number("GAMELAKE_LINEAGE_SECONDS", 3_600, 0, 86_400)),
        file=Path(file) if file else None,
    )
