"""What a person may ask of the telemetry."""

from dataclasses import dataclass
from pathlib import Path


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
