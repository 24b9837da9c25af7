"""What a person may ask of a job's telemetry, by the variables that all jobs share."""

from gamelake.settings.environment import Environment
from gamelake.telemetry.options import TelemetryOptions


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
