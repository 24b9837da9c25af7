"""Access to Kafka: addresses and, with SASL, credentials; as options of librdkafka and of Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model import credentials
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment

_PROTOCOL, _MECHANISM = "SASL_PLAINTEXT", "PLAIN"


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Kafka's addresses and credentials; anonymous without credentials. `repr` leaves out the password."""

    bootstrap_servers: str
    credentials: ServerCredentials | None = None

    @classmethod
    def of(cls, bootstrap_servers: str, credentials_file: Path | str | None) -> Self:
        """The access that two settings name; anonymous without a file.

        Raises:
            SettingsError: the file can't be read, or has another form.
        """
        return cls(bootstrap_servers, read_credentials(Path(credentials_file)) if credentials_file else None)

    def for_clients(self) -> dict[str, str | int]:
        """Settings of a librdkafka client."""
        settings: dict[str, str | int] = {"bootstrap.servers": self.bootstrap_servers}
        if self.credentials:
            settings |= {
                "security.protocol": _PROTOCOL,
                "sasl.mechanism": _MECHANISM,
                "sasl.username": self.credentials.username,
                "sasl.password": self.credentials.password,
            }
        return settings

    def for_spark(self) -> dict[str, str]:
        """Options of Spark's Kafka source."""
        options = {"kafka.bootstrap.servers": self.bootstrap_servers}
        if self.credentials:
            options |= {
                "kafka.security.protocol": _PROTOCOL,
                "kafka.sasl.mechanism": _MECHANISM,
                "kafka.sasl.jaas.config": _jaas(self.credentials),
            }
        return options


def read_credentials(file: Path) -> ServerCredentials:
    """Read a file of Kafka's credentials.

    Raises:
        SettingsError: the file can't be read, or has another form.
    """
    return credentials.read_credentials(file, "GAMELAKE_KAFKA_CREDENTIALS_FILE")


def _jaas(credentials: ServerCredentials) -> str:
    """A JAAS configuration; values are quoted with C's escapes.

    Source: Java, `javax.security.auth.login.Configuration`.
    """
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f"username={_quoted(credentials.username)} password={_quoted(credentials.password)};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Settings of a program that needs only Kafka."""

    access: KafkaAccess

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(access=kafka_access(Environment(variables)))


def kafka_access(env: Environment) -> KafkaAccess:
    """Read Kafka's addresses and, if a file is named, the credentials."""
    return KafkaAccess.of(
        env.required("GAMELAKE_BOOTSTRAP_SERVERS"), env.optional("GAMELAKE_KAFKA_CREDENTIALS_FILE", "")
    )
