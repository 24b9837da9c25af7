"""How to reach Kafka."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gamelake.kafka import KafkaAccess
from gamelake.settings.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """How to reach Kafka, for who needs no more."""

    access: KafkaAccess

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(access=kafka_access(Environment(variables)))


def kafka_access(env: Environment) -> KafkaAccess:
    """Kafka's addresses, and the name to go by if it asks for one."""
    return KafkaAccess.of(
        env.required("GAMELAKE_BOOTSTRAP_SERVERS"), env.optional("GAMELAKE_KAFKA_CREDENTIALS_FILE", "")
    )
