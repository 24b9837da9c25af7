"""The internal certificate authority: what its certificates are valid for, and when they are issued again."""

import errno
import ssl
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates
from prometheus_client.parser import text_string_to_metric_families

from gamelake.model.errors import StartupError
from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.failing import failing

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SERVICES, CLIENTS = ("kafka", "object-store"), ("operator",)
ISSUED = {"kafka.pem", "object-store.pem", "operator.pem", "operator.p12"}


class Directory:
    """A directory of certificates, and what is said about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []

    def update(self, now: datetime = NOW, *, renew: bool = False) -> None:
        self.lines.clear()
        made = CertificateDirectory(self.path, ChangeLog("certificates", self.lines.append))
        made.update(SERVICES, now, clients=CLIENTS, renew=renew)

    def certificate(self, name: str) -> x509.Certificate:
        return x509.load_pem_x509_certificate((self.path / f"{name}.pem").read_bytes())

    def contents(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.path.iterdir() if file.is_file()}

    def stated_expiries(self) -> dict[str, float]:
        """When each service's certificate expires, as Prometheus reads it."""
        (expiries,) = text_string_to_metric_families((self.path / "issued/certificates.prom").read_text())
        return {sample.labels["service"]: sample.value for sample in expiries.samples}


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    made = Directory(tmp_path / "certificates")
    made.update()
    return made


def handshake(server: Path, authority: Path, name: str) -> None:
    """A TLS handshake in memory; raises SSLError where the client refuses the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=str(authority)).wrap_bio(incoming, outgoing, server_hostname=name)
    host = context.wrap_bio(outgoing, incoming, server_side=True)
    for side in (client, host, client, host):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()


@pytest.mark.parametrize("name", ["kafka", "localhost", "127.0.0.1"])
def test_a_client_that_trusts_the_authority_accepts_a_service_by_its_name_and_on_this_machine(
    directory: Directory, name: str
) -> None:
    # The clock of the handshake is the machine's.
    directory.update(datetime.now(UTC), renew=True)

    handshake(directory.path / "kafka.pem", directory.path / "ca.pem", name)


def test_a_client_rejects_a_service_under_the_name_of_another_one(directory: Directory) -> None:
    directory.update(datetime.now(UTC), renew=True)

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(directory.path / "kafka.pem", directory.path / "ca.pem", "object-store")


def test_a_client_rejects_a_certificate_of_another_authority(directory: Directory, tmp_path: Path) -> None:
    other = Directory(tmp_path / "others")
    other.update(datetime.now(UTC))

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(other.path / "kafka.pem", directory.path / "ca.pem", "kafka")


def test_a_client_that_is_no_service_can_not_pass_for_one(directory: Directory) -> None:
    directory.update(datetime.now(UTC), renew=True)

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(directory.path / "operator.pem", directory.path / "ca.pem", "operator")


def test_browsers_get_the_same_certificate_and_key(directory: Directory) -> None:
    key, certificate, _ = load_key_and_certificates((directory.path / "operator.p12").read_bytes(), b"operator")

    assert certificate == directory.certificate("operator")
    assert key is not None
    assert key.public_key() == directory.certificate("operator").public_key()


def test_only_this_user_can_reach_the_keys_and_no_container_the_authoritys(directory: Directory) -> None:
    modes = {file.name: file.stat().st_mode & 0o777 for file in directory.path.iterdir() if file.is_file()}

    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert modes.pop("ca.key") == 0o400
    assert modes == dict.fromkeys(("ca.pem", "ca.p12", *ISSUED), 0o444)


def test_a_second_run_changes_nothing(directory: Directory) -> None:
    before = directory.contents()

    directory.update(NOW + timedelta(days=300))

    assert (directory.contents(), directory.lines) == (before, [])


def test_a_certificate_is_issued_again_a_month_before_it_expires(directory: Directory) -> None:
    before = directory.contents()

    directory.update(NOW + timedelta(days=368))

    assert directory.lines == [f"certificates: renewed the certificate of {each}" for each in (*SERVICES, *CLIENTS)]
    assert {name for name, content in directory.contents().items() if before[name] != content} == ISSUED


def test_renewing_issues_the_certificates_of_all_services_and_keeps_the_authority(directory: Directory) -> None:
    before = directory.contents()

    directory.update(renew=True)

    after = directory.contents()
    assert {name for name in after if before[name] == after[name]} == {"ca.pem", "ca.p12", "ca.key"}


def test_a_renewed_certificate_is_in_the_file_that_a_container_has_mounted(directory: Directory) -> None:
    with (directory.path / "kafka.pem").open("rb") as mounted:
        before = mounted.read()
        directory.update(renew=True)
        mounted.seek(0)
        seen = mounted.read()

    assert seen != before
    assert x509.load_pem_x509_certificate(seen) == directory.certificate("kafka")
    handshake(directory.path / "kafka.pem", directory.path / "ca.pem", "kafka")
    assert directory.contents().keys() == {*ISSUED, "ca.pem", "ca.key", "ca.p12"}


def test_a_renewal_on_a_full_disk_leaves_the_certificates_as_they_were(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = directory.contents()

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", failing(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            directory.update(renew=True)

    assert {name: directory.contents()[name] for name in before} == before


@pytest.mark.parametrize(
    "content", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff\xfe"]
)
def test_a_damaged_certificate_is_issued_again(directory: Directory, content: bytes) -> None:
    file = directory.path / "kafka.pem"
    file.chmod(0o600)
    file.write_bytes(content)

    directory.update()

    assert directory.certificate("kafka").not_valid_after_utc == NOW + timedelta(days=397)
    assert directory.lines == ["certificates: created the certificate of kafka"]


def test_the_certificate_of_another_service_is_not_used(directory: Directory) -> None:
    (directory.path / "object-store.pem").replace(directory.path / "kafka.pem")

    directory.update()

    names = directory.certificate("kafka").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kafka", "localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [IPv4Address("127.0.0.1")]


def test_a_certificate_of_a_former_authority_is_issued_again(directory: Directory) -> None:
    for name in ("ca.pem", "ca.key"):
        (directory.path / name).unlink()

    directory.update()

    for service in SERVICES:
        directory.certificate(service).verify_directly_issued_by(directory.certificate("ca"))


@pytest.mark.parametrize("name", ["ca.pem", "ca.key"])
def test_half_an_authority_is_an_error_that_says_what_to_remove(directory: Directory, name: str) -> None:
    (directory.path / name).unlink()

    with pytest.raises(StartupError, match=r"remove ca.pem and ca.key, then run 'make up'"):
        directory.update()


def test_the_key_of_another_authority_is_an_error(directory: Directory, tmp_path: Path) -> None:
    other = Directory(tmp_path / "others")
    other.update()
    (other.path / "ca.key").replace(directory.path / "ca.key")

    with pytest.raises(StartupError, match="not the key of"):
        directory.update()


def test_an_authority_that_expires_before_its_certificates_is_an_error(directory: Directory) -> None:
    with pytest.raises(StartupError, match="expires on 2036-05-29"):
        directory.update(NOW + timedelta(days=3_300))


def test_the_program_says_what_it_has_made(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "services.provision.certificates", str(tmp_path / "made"), "kafka"]

    first = subprocess.run(command, check=True, capture_output=True, text=True)
    second = subprocess.run(command, check=True, capture_output=True, text=True)

    assert first.stdout == (
        "certificates: created the certificate authority\ncertificates: created the certificate of kafka\n"
    )
    assert second.stdout == "certificates: nothing to change\n"


def test_the_expiry_of_each_services_last_certificate_is_stated_without_a_key(directory: Directory) -> None:
    directory.update(NOW + timedelta(days=1), renew=True)

    assert directory.stated_expiries() == {
        name: directory.certificate(name).not_valid_after_utc.timestamp() for name in SERVICES
    }
    assert [file.name for file in (directory.path / "issued").iterdir()] == ["certificates.prom"]
    assert (directory.path / "issued").stat().st_mode & 0o777 == 0o755
