"""The stack's internal certificate authority, and a certificate for each of its services.

`python -m services.provision.certificates DIRECTORY SERVICE...` creates missing certificates, and again those that
expire within a month, with `--client NAME` also those of clients that are not services; `--renew` issues all again. The
files of the directory:

- `ca.pem`, `ca.key`: the authority's certificate, which all clients trust, and its key, which no container gets.
- `ca.p12`: the same certificate as a trust store for Java, without a password, as it holds nothing secret.
- `<service>.pem`: the private key and the certificate of a service, valid for its name and for this machine.
- `issued/certificates.prom`: when each service's certificate expires, as metrics.
- `<client>.pem`, `<client>.p12`: those of a client, for commands and for browsers, which want a password: the client's
  name. Only the directory's mode protects them.

Sources: RFC 5280, "Internet X.509 Public Key Infrastructure"; for lifetimes the CA/Browser Forum's "Baseline
Requirements".
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gamelake.command import command_parser
from gamelake.model.errors import StartupError
from gamelake.program import OK, run
from services.provision.provisioning import ChangeLog

_AUTHORITY = "ca"
# A folder without keys, which a container may have as a whole.
_ISSUED = "issued"
EXPIRY_METRIC = "gamelake_certificate_issued_expiry_timestamp_seconds"
_AUTHORITY_LIFETIME = timedelta(days=3_650)
_LIFETIME = timedelta(days=397)
# A certificate that has less than this left is issued again.
_RENEWAL = timedelta(days=30)
# Clocks of containers are those of the machine; clocks of other clients may be behind.
_CLOCK_DIFFERENCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority: its certificate and its private key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @classmethod
    def new(cls, now: datetime) -> Self:
        """Create an authority, valid for ten years."""
        key = generate_private_key(SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gamelake internal CA")])
        builder = _builder(name, name, key, now, _AUTHORITY_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        return cls(builder.sign(key, SHA256()), key)

    def issue(self, subject: str, now: datetime, *, serves: bool = True) -> "Issued":
        """Issue a private key and a certificate, valid as a client's and, if the subject serves, as a server's."""
        key = generate_private_key(SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        names: list[x509.GeneralName] = [x509.DNSName(subject)]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if serves:
            # The published ports, and a service's own health check.
            names += [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = _builder(name, self.certificate.subject, key, now, _LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        return Issued(builder.sign(self.key, SHA256()), key)

    def trust_store(self) -> bytes:
        """Return the certificate as a trust store for Java (PKCS #12)."""
        return serialize_java_truststore([PKCS12Certificate(self.certificate, b"gamelake")], NoEncryption())


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    def pem(self) -> bytes:
        """Return both as PEM, the key first."""
        return _private_bytes(self.key) + self.certificate.public_bytes(Encoding.PEM)

    def for_browsers(self, password: str) -> bytes:
        """Return both as PKCS #12."""
        encryption = BestAvailableEncryption(password.encode())
        return serialize_key_and_certificates(password.encode(), self.key, self.certificate, None, encryption)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCK_DIFFERENCE).not_valid_after(now + lifetime)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_bytes(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class CertificateDirectory:
    """The directory of the stack's certificates; each file is written whole or not at all."""

    def __init__(self, directory: Path, changes: ChangeLog) -> None:
        self._directory = directory
        self._changes = changes

    def update(
        self, services: Sequence[str], now: datetime, *, clients: Sequence[str] = (), renew: bool = False
    ) -> None:
        """Create what is missing or expires within a month; with `renew` all certificates.

        Raises:
            StartupError: the authority's files can't be read, or it expires within the lifetime of a certificate.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        authority = self._authority(now)
        for name in (*services, *clients):
            expiry = self._expiry(name, authority)
            if expiry is None or renew or expiry - now < _RENEWAL:
                issued = authority.issue(name, now, serves=name in services)
                if name in clients:
                    self._keep(f"{name}.p12", issued.for_browsers(name))
                self._keep_in_place(f"{name}.pem", issued.pem())
                self._changes.note(f"{'created' if expiry is None else 'renewed'} the certificate of {name}")
        self._state_expiries(services, authority)

    def _state_expiries(self, services: Sequence[str], authority: Authority) -> None:
        """Write when each service's certificate expires, as metrics: what a port serves is compared with it."""
        folder = self._directory / _ISSUED
        folder.mkdir(mode=0o755, exist_ok=True)
        expiries = {name: self._expiry(name, authority) for name in services}
        known = ((name, expiry.timestamp()) for name, expiry in expiries.items() if expiry)
        lines = [f'{EXPIRY_METRIC}{{service="{name}"}} {moment:.0f}' for name, moment in known]
        self._keep(f"{_ISSUED}/certificates.prom", "\n".join([f"# TYPE {EXPIRY_METRIC} gauge", *lines, ""]).encode())

    def _authority(self, now: datetime) -> Authority:
        certificate, key = self._directory / f"{_AUTHORITY}.pem", self._directory / f"{_AUTHORITY}.key"
        if not key.exists() and not certificate.exists():
            made = Authority.new(now)
            # The key last: a directory with a key has all files.
            self._keep(f"{_AUTHORITY}.p12", made.trust_store())
            self._keep(certificate.name, made.certificate.public_bytes(Encoding.PEM))
            self._keep(key.name, _private_bytes(made.key), mode=0o400)
            self._changes.note("created the certificate authority")
            return made
        try:
            found = x509.load_pem_x509_certificate(certificate.read_bytes())
            private = load_pem_private_key(key.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise StartupError(
                f"the certificate authority in {self._directory} can't be read ({error}): remove {certificate.name} "
                f"and {key.name}, then run 'make up', which creates a new one and certificates for all services"
            ) from error
        if not isinstance(private, EllipticCurvePrivateKey) or private.public_key() != found.public_key():
            raise StartupError(
                f"{key} is not the key of {certificate}: remove both, then run 'make up', which creates them again"
            )
        if found.not_valid_after_utc - now < _LIFETIME:
            raise StartupError(
                f"the certificate authority in {self._directory} expires on {found.not_valid_after_utc:%Y-%m-%d}: "
                f"remove {certificate.name} and {key.name}, then run 'make down' and 'make up'"
            )
        return Authority(found, private)

    def _expiry(self, name: str, authority: Authority) -> datetime | None:
        """When a certificate expires; None if there is none, or it is another authority's or name's."""
        try:
            found = x509.load_pem_x509_certificate((self._directory / f"{name}.pem").read_bytes())
            found.verify_directly_issued_by(authority.certificate)
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            return None
        return found.not_valid_after_utc if name in names.get_values_for_type(x509.DNSName) else None

    def _keep_in_place(self, name: str, content: bytes) -> None:
        """Write a file as `_keep` does, or over the one that is there.

        A container has the file mounted, not its folder: it would see another file at its next start only.
        """
        file = self._directory / name
        if not file.exists():
            self._keep(name, content)
            return
        # On a full disk this is what fails.
        self._keep(f".{name}.renewed", content)
        file.chmod(0o644)
        with file.open("r+b", buffering=0) as opened:
            # In one write, and never shorter: a reader gets the old file or the new one.
            opened.write(content.ljust(file.stat().st_size, b"\n"))
            os.fsync(opened.fileno())
        file.chmod(0o444)
        # A reader that came before the last byte reads it again.
        os.utime(file)
        (self._directory / f".{name}.renewed").unlink()

    def _keep(self, name: str, content: bytes, mode: int = 0o444) -> None:
        """Write a file under a temporary name and rename it."""
        file = self._directory / name
        unfinished = file.with_name(f".{file.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(content)
        # Containers read it with other user ids; the directory's mode excludes other users of the machine.
        unfinished.chmod(mode)
        unfinished.replace(file)


def main() -> int:
    """Run once."""
    parser = command_parser(__doc__)
    parser.add_argument("directory", type=Path, help="where the files are")
    parser.add_argument("services", nargs="+", metavar="SERVICE", help="the services' names, as clients address them")
    parser.add_argument("--client", action="append", default=[], metavar="NAME", help="a client that is not a service")
    parser.add_argument("--renew", action="store_true", help="issue all certificates again")
    arguments = parser.parse_args()
    changes = ChangeLog("certificates")
    directory = CertificateDirectory(arguments.directory, changes)
    directory.update(arguments.services, datetime.now(UTC), clients=arguments.client, renew=arguments.renew)
    changes.close()
    return OK


if __name__ == "__main__":
    run(main)
