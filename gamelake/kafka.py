"""Access to Kafka: addresses, TLS and, with SASL, credentials; as options of librdkafka and of Spark."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gamelake.model import credentials
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError

SYSTEM_AUTHORITIES = "system"


class SaslMechanism(StrEnum):
    """The way in which a client proves that it knows its password (RFC 4616, RFC 5802)."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Kafka's addresses and credentials; anonymous without credentials. `repr` leaves out the password.

    Attributes:
        authorities: the file of the certificate authorities (PEM) that may have signed the brokers' certificates, or
            `system` for those of the machine; without it connections are not encrypted.
    """

    bootstrap_servers: str
    credentials: ServerCredentials | None = None
    authorities: str = ""
    mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_512

    def for_clients(self) -> dict[str, str | int]:
        """Return the settings of a librdkafka client."""
        settings: dict[str, str | int] = {"bootstrap.servers": self.bootstrap_servers}
        if self._protocol:
            settings["security.protocol"] = self._protocol
        if self.authorities:
            settings["ssl.ca.location"] = "probe" if self.authorities == SYSTEM_AUTHORITIES else self.authorities
        if self.credentials:
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.credentials.username,
                "sasl.password": self.credentials.password,
            }
        return settings

    def for_spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source."""
        options = {"kafka.bootstrap.servers": self.bootstrap_servers}
        if self._protocol:
            options["kafka.security.protocol"] = self._protocol
        if self.authorities and self.authorities != SYSTEM_AUTHORITIES:
            options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": self.authorities}
        if self.credentials:
            options |= {
                "kafka.sasl.mechanism": self.mechanism,
                "kafka.sasl.jaas.config": _jaas(self.credentials, self.mechanism),
            }
        return options

    @property
    def _protocol(self) -> str:
        """Kafka's name of the protocol; empty for its default, PLAINTEXT."""
        if self.credentials:
            return "SASL_SSL" if self.authorities else "SASL_PLAINTEXT"
        return "SSL" if self.authorities else ""


def kafka_access(env: Environment) -> KafkaAccess:
    """Read the access from settings; anonymous without a file of credentials.

    Raises:
        SettingsError: a variable is missing or malformed, or a file can't be read or has another form.
    """
    servers = env.required("GAMELAKE_BOOTSTRAP_SERVERS")
    file = env.optional("GAMELAKE_KAFKA_CREDENTIALS_FILE", "")
    return KafkaAccess(
        servers,
        read_credentials(Path(file)) if file else None,
        check_authorities(env.optional("GAMELAKE_KAFKA_CA_FILE", "")),
        _mechanism(env),
    )


def read_credentials(file: Path) -> ServerCredentials:
    """Read a file of Kafka's credentials.

    Raises:
        SettingsError: the file can't be read, or has another form.
    """
    return credentials.read_credentials(file, "GAMELAKE_KAFKA_CREDENTIALS_FILE")


def check_authorities(found: str) -> str:
    """Return the file itself, `system`, or nothing, as the setting has it.

    Raises:
        SettingsError: the file can't be read, or has no certificate.
    """
    if found and found != SYSTEM_AUTHORITIES:
        try:
            text = Path(found).read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise SettingsError(f"GAMELAKE_KAFKA_CA_FILE is '{found}', which can't be read") from error
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise SettingsError(f"GAMELAKE_KAFKA_CA_FILE is '{found}', which has no certificate in PEM")
    return found


def _mechanism(env: Environment) -> SaslMechanism:
    return env.choice("GAMELAKE_KAFKA_SASL_MECHANISM", SaslMechanism, SaslMechanism.SCRAM_SHA_512)


def _jaas(credentials: ServerCredentials, mechanism: SaslMechanism) -> str:
    """A JAAS configuration; values are quoted with C's escapes.

    Source: Java, `javax.security.auth.login.Configuration`.
    """
    module = "plain.PlainLoginModule" if mechanism is SaslMechanism.PLAIN else "scram.ScramLoginModule"
    return (
        f"org.apache.kafka.common.security.{module} required "
        f"username={_quoted(credentials.username)} password={_quoted(credentials.password)};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
