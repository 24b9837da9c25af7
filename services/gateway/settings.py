"""The settings of the ingest gateway, from the environment."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.options import TraceOptions, trace_options
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.schemas.event_schemas import registry_writer
from services.gateway.kafka_producer import QueueLimits

_CONTRACTS = Path(__file__).parents[2] / "contracts"
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Limits of request bodies.

    Attributes:
        size: bytes of one body as it is sent.
        in_flight: bytes of all bodies that are being received, in one process.
        decompressed: bytes of one body after decompression.
        events: events in one body.
        timeout: from the request's headers to the body's end.
    """

    size: int
    in_flight: int
    decompressed: int
    events: int
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of the gateway; docs/settings.md explains each variable."""

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
    keys_file: Path
    vault: VaultSettings
    remembered_players: int
    signature_window: timedelta
    wrong_signatures: int
    lockout: timedelta
    burst: timedelta
    quota_directory: Path | None
    body: BodyLimits
    queue: QueueLimits
    traces: TraceOptions

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
            contract_version=read.whole("INGEST_CONTRACT_VERSION", 3, 1, 1000),
            keys_file=Path(read.required("INGEST_KEYS_FILE")),
            vault=VaultSettings.from_env(variables),
            remembered_players=read.whole("INGEST_REMEMBERED_PLAYERS", 100_000, 1, 10_000_000),
            signature_window=timedelta(seconds=read.number("INGEST_SIGNATURE_WINDOW_SECONDS", 300, 1, 3600)),
            wrong_signatures=read.whole("INGEST_MAX_WRONG_SIGNATURES", 100, 0, 1_000_000),
            lockout=timedelta(seconds=read.number("INGEST_LOCKOUT_SECONDS", 60, 1, 3600)),
            burst=timedelta(seconds=read.number("INGEST_BURST_SECONDS", 2, 0.1, 60)),
            quota_directory=_quota_directory(read),
            body=BodyLimits(
                size=read.whole("INGEST_MAX_BODY_BYTES", _MIB, 1024, 64 * _MIB),
                in_flight=read.whole("INGEST_MAX_RECEIVING_BYTES", 32 * _MIB, _MIB, 4096 * _MIB),
                decompressed=read.whole("INGEST_MAX_DECOMPRESSED_BYTES", 8 * _MIB, 1024, 256 * _MIB),
                events=read.whole("INGEST_MAX_EVENTS", 5000, 1, 100_000),
                timeout=timedelta(seconds=read.number("INGEST_BODY_SECONDS", 10, 0.1, 300)),
            ),
            queue=QueueLimits(
                records=read.whole("INGEST_MAX_WAITING_RECORDS", 15_000, 100, 10_000_000),
                bytes=read.whole("INGEST_MAX_WAITING_BYTES", 64 * _MIB, _MIB, 4096 * _MIB),
                timeout=timedelta(seconds=read.number("INGEST_KAFKA_SECONDS", 15, 1, 300)),
            ),
            traces=trace_options(read),
        )


def _quota_directory(read: Environment) -> Path | None:
    directory = read.path("INGEST_QUOTA_DIRECTORY")
    if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
        raise SettingsError(f"INGEST_QUOTA_DIRECTORY is '{directory}', which is no directory that can be written")
    return directory


def _certificate(read: Environment) -> Path | None:
    file = read.path("INGEST_CERTIFICATE_FILE")
    if file is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
        except OSError as error:
            raise SettingsError(
                f"INGEST_CERTIFICATE_FILE is '{file}', which is not a private key and its certificate in PEM: {error}"
            ) from error
    return file
