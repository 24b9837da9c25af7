"""Options of metrics and lineage, which all jobs have."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gamelake.model.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryOptions:
    """Where metrics are served and which file is the heartbeat; both off by default.

    Attributes:
        metrics_port: None: no endpoint.
        metrics_host: the address that the endpoint listens on.
        heartbeat_file: touched while the job is alive; None: no file.
    """

    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    heartbeat_file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether metrics or a heartbeat are on."""
        return self.metrics_port is not None or self.heartbeat_file is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOptions:
    """How often a running job emits its lineage event again (zero: lineage is off), and a file for copies of events."""

    every: timedelta = timedelta(hours=1)
    file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether lineage is on."""
        return self.every > timedelta()


def telemetry_options(env: Environment) -> TelemetryOptions:
    """Read the options of metrics and heartbeat.

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
    """Read the options of lineage.

    Raises:
        SettingsError: a variable is malformed.
    """
    file = env.optional("GAMELAKE_LINEAGE_FILE", "")
    return LineageOptions(
        every=timedelta(seconds=env.number("GAMELAKE_LINEAGE_SECONDS", 3_600, 0, 86_400)),
        file=Path(file) if file else None,
    )
