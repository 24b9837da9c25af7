"""The settings of the delivery service: the one place of its own that reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, KafkaSettings
from gamelake.model.environment import Environment
from gamelake.storage.store import Location
from gamelake.streaming.files.settings import landing

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """What the service needs to know; docs/settings.md explains each variable."""

    kafka: KafkaAccess
    topic: str
    landing: Location
    prefix: str
    group: str
    most_bytes: int
    longest: timedelta
    heartbeat_file: Path | None = None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            kafka=KafkaSettings.from_env(variables).access,
            topic=env.required("GAMELAKE_TOPIC"),
            landing=landing(variables),
            prefix=env.optional("GAMELAKE_DELIVERY_PREFIX", "delivered/"),
            group=env.optional("GAMELAKE_DELIVERY_GROUP", "delivery"),
            most_bytes=env.whole("GAMELAKE_DELIVERY_MIB", 8, 1, 128) * MIB,
            longest=timedelta(seconds=env.number("GAMELAKE_DELIVERY_SECONDS", 60, 0.1, 900)),
            heartbeat_file=env.path("GAMELAKE_HEARTBEAT_FILE"),
        )
