"""The settings of the ingest gateway, from the environment."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.contract.experiments import EXPERIMENTS_FILE
from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.options import TelemetryOptions, TraceOptions, telemetry_options, trace_options
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.schemas.event_schemas import registry_writer
from services.gateway.limits.memory_budget import REQUEST_BYTES, VALUES_PER_EVENT, json_bytes, protobuf_bytes

_CONTRACTS = Path(__file__).parents[2] / "contracts"
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Limits of request bodies.

    Attributes:
        size: bytes of one body as it is sent.
        decompressed: bytes of one body after decompression.
        events: events in one body.
        timeout: from the request's headers to the body's end.
    """

    size: int
    decompressed: int
    events: int
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of the gateway; docs/settings.md explains each variable.

    Attributes:
        memory: bytes that the requests of one process may take at once.
        player_cache: bytes of the players that one process remembers.
    """

    host: str
    port: int
    processes: int
    certificate_file: Path | None
    kafka: KafkaAccess
    topic: str
    audit_topic: str
    registry_url: str
    registry_writer: ServerCredentials | None
    contracts: Path
    contract_version: int
    experiments_file: Path
    keys_file: Path
    vault: VaultSettings
    memory: int
    player_cache: int
    signature_window: timedelta
    burst: timedelta
    quota_directory: Path | None
    body: BodyLimits
    kafka_timeout: timedelta
    telemetry: TelemetryOptions
    traces: TraceOptions

    def check_memory(self) -> None:
        """Check that the largest body fits into the memory that one game gets.

        Raises:
            SettingsError: it does not.
        """
        body = self.body
        largest = REQUEST_BYTES + max(
            json_bytes(body.decompressed, VALUES_PER_EVENT * body.events), protobuf_bytes(body.decompressed)
        )
        if largest > self.memory // 2:
            raise SettingsError(
                f"INGEST_MEMORY_BYTES is {self.memory}, which is too little for a body of "
                f"INGEST_MAX_DECOMPRESSED_BYTES with INGEST_MAX_EVENTS events: set it to {2 * largest} or "
                "lower those limits"
            )

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        read = Environment(variables)
        return cls(
            host=read.optional("INGEST_HOST", "127.0.0.1"),
            port=read.whole("INGEST_PORT", 8000, 1, 65_535),
            processes=read.whole("INGEST_PROCESSES", 1, 1, 256),
            certificate_file=_certificate(read),
            kafka=kafka_access(read),
            topic=read.required("GAMELAKE_TOPIC"),
            audit_topic=read.optional("GAMELAKE_AUDIT_SUPPORT_CALLS_TOPIC", "audit.support-calls"),
            registry_url=read.required("GAMELAKE_REGISTRY_URL"),
            registry_writer=registry_writer(read),
            contracts=_CONTRACTS,
            contract_version=read.whole("INGEST_CONTRACT_VERSION", 4, 1, 1000),
            experiments_file=read.path("INGEST_EXPERIMENTS_FILE") or _CONTRACTS / EXPERIMENTS_FILE,
            keys_file=Path(read.required("INGEST_KEYS_FILE")),
            vault=VaultSettings.from_env(variables),
            memory=read.whole("INGEST_MEMORY_BYTES", 104 * _MIB, _MIB, 65_536 * _MIB),
            player_cache=read.whole("INGEST_PLAYER_CACHE_BYTES", 48 * _MIB, 1024, 65_536 * _MIB),
            signature_window=timedelta(seconds=read.number("INGEST_SIGNATURE_WINDOW_SECONDS", 300, 1, 3600)),
            burst=timedelta(seconds=read.number("INGEST_BURST_SECONDS", 2, 0.1, 60)),
            quota_directory=_quota_directory(read),
            body=BodyLimits(
                size=read.whole("INGEST_MAX_BODY_BYTES", _MIB, 1024, 64 * _MIB),
                decompressed=read.whole("INGEST_MAX_DECOMPRESSED_BYTES", 8 * _MIB, 1024, 256 * _MIB),
                events=read.whole("INGEST_MAX_EVENTS", 5000, 1, 100_000),
                timeout=timedelta(seconds=read.number("INGEST_BODY_SECONDS", 10, 0.1, 300)),
            ),
            kafka_timeout=timedelta(seconds=read.number("INGEST_KAFKA_SECONDS", 15, 1, 300)),
            telemetry=telemetry_options(read),
            traces=trace_options(read),
        )


def _quota_directory(read: Environment) -> Path | None:
    directory = read.path("INGEST_QUOTA_DIRECTORY")
    if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
        raise SettingsError(f"INGEST_QUOTA_DIRECTORY is '{directory}', which is not a writable directory")
    return directory


def _certificate(read: Environment) -> Path | None:
    file = read.path("INGEST_CERTIFICATE_FILE")
    if file is not None:
        read_certificate(file)
    return file


def read_certificate(file: Path) -> bytes:
    """Return the content of a file with a private key and its certificate.

    Raises:
        SettingsError: it can't be read, or has something else.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
        return file.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"INGEST_CERTIFICATE_FILE is '{file}', which is not a private key and its certificate in PEM: {error}"
        ) from error
