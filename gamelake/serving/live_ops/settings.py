"""The settings of the live-ops job."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment
from gamelake.schemas.event_schemas import registry_writer
from gamelake.streaming.driver.settings import IngestSettings

STREAM = "live_ops"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOpsSettings:
    """The settings of the live-ops job.

    Attributes:
        reading: how to read records, from the same variables as the ingest job's.
        registry_writer: the credentials for registering schemas; None if the registry accepts them from any client.
        player_topic: the topic of players' states.
        signal_topic: the topic of signals.
        tasks: the number of shares of the players, one for each task.
        table_interval: the shortest time between two refreshes of the table of players' states.
        minute_patience: how far event time must pass the end of a minute before it is judged.
    """

    reading: IngestSettings
    registry_writer: ServerCredentials | None
    player_topic: str
    signal_topic: str
    tasks: int
    table_interval: timedelta
    minute_patience: timedelta

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings from environment variables.

        Args:
            variables: the variables by name.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        stream = env.optional("GAMELAKE_STREAM", STREAM)
        return cls(
            reading=IngestSettings.from_env({**variables, "GAMELAKE_STREAM": stream}),
            registry_writer=registry_writer(env),
            player_topic=env.optional("GAMELAKE_LIVE_OPS_PLAYER_TOPIC", "live-ops.player-state"),
            signal_topic=env.optional("GAMELAKE_LIVE_OPS_SIGNAL_TOPIC", "live-ops.signals"),
            tasks=env.whole("GAMELAKE_LIVE_OPS_TASKS", 2, 1, 32),
            table_interval=timedelta(seconds=env.number("GAMELAKE_LIVE_OPS_TABLE_SECONDS", 60, 0, 86_400)),
            minute_patience=timedelta(seconds=env.number("GAMELAKE_LIVE_OPS_PATIENCE_SECONDS", 60, 0, 3_600)),
        )
