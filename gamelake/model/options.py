"""Options of metrics, lineage and traces, which programs share, and of TLS on a process's own endpoints."""

import re
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError

_LARGEST_ONE_IN = 16**7


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointTls:
    """TLS with certificates on both sides.

    Attributes:
        certificate: the file of the endpoint's private key and certificate (PEM).
        clients: the file of the certificate authorities (PEM) whose clients may connect; no other client may.
    """

    certificate: Path
    clients: Path

    def load(self) -> "LoadedTls":
        """Read both files.

        Raises:
            SettingsError: one of them can't be read.
        """
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.clients))
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_cert_chain(self.certificate)
            certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"'{self.certificate}' must be a private key with its certificate, and '{self.clients}' certificates "
                f"of authorities, in PEM: {error}"
            ) from error
        return LoadedTls(context, certificate.not_valid_after_utc)


@dataclass(frozen=True, slots=True)
class LoadedTls:
    """TLS of a server, and when its certificate expires."""

    context: ssl.SSLContext
    expires: datetime


def endpoint_tls(env: Environment, certificate: str, clients: str) -> EndpointTls | None:
    """Read the variables that name the two files; None if neither is set.

    Raises:
        SettingsError: one of them is not set, or a file is not what it must be.
    """
    files = {name: env.path(name) for name in (certificate, clients)}
    missing = [name for name, file in files.items() if file is None]
    if len(missing) == len(files):
        return None
    if missing:
        raise SettingsError(f"{missing[0]} is not set: TLS needs {certificate} and {clients}")
    tls = EndpointTls(certificate=Path(str(files[certificate])), clients=Path(str(files[clients])))
    try:
        tls.load()
    except SettingsError as error:
        raise SettingsError(f"{certificate} and {clients}: {error}") from error
    return tls


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryOptions:
    """The port that metrics are served on and the heartbeat file; both off by default.

    Attributes:
        metrics_port: None: no endpoint.
        metrics_host: the address that the endpoint listens on.
        metrics_tls: None: the endpoint serves HTTP.
        heartbeat_file: touched while the job is alive; None: no file.
    """

    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_tls: EndpointTls | None = None
    heartbeat_file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """True if metrics or a heartbeat are on."""
        return self.metrics_port is not None or self.heartbeat_file is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOptions:
    """The interval at which a running job repeats its lineage event (zero: lineage is off), and a file for copies."""

    every: timedelta = timedelta(hours=1)
    file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """True if lineage is on."""
        return self.every > timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """The share of events to trace: one in `one_in`, a power of 16; 0: none."""

    one_in: int = 0

    @property
    def are_wanted(self) -> bool:
        """True if any event is traced."""
        return self.one_in > 0


def telemetry_options(env: Environment) -> TelemetryOptions:
    """Read the options of metrics and heartbeat.

    Raises:
        SettingsError: a variable is malformed.
    """
    port = env.whole("GAMELAKE_METRICS_PORT", 1, 1, 65_535) if env.optional("GAMELAKE_METRICS_PORT", "") else None
    return TelemetryOptions(
        metrics_port=port,
        metrics_host=env.optional("GAMELAKE_METRICS_HOST", "127.0.0.1"),
        metrics_tls=endpoint_tls(env, "GAMELAKE_METRICS_CERTIFICATE_FILE", "GAMELAKE_METRICS_CA_FILE"),
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


def trace_options(env: Environment) -> TraceOptions:
    """Read the options of traces.

    Raises:
        SettingsError: the variable is malformed.
    """
    one_in = env.whole("GAMELAKE_TRACE_ONE_IN", 0, 0, _LARGEST_ONE_IN)
    if one_in and not re.fullmatch("10*", f"{one_in:x}"):
        raise SettingsError(f"GAMELAKE_TRACE_ONE_IN is {one_in}; it must be 0 or a power of 16, such as 256 or 4096")
    return TraceOptions(one_in=one_in)
