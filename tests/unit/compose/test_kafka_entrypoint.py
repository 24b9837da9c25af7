"""The Kafka image starts with users that come from the secrets, and from nowhere else."""

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.programs import Outcome, add_program, lines_of, run_alone
from tests.unit.compose.configured import COMPOSE

# Instead of a JVM: notes how it was called, and formats as Kafka's tool does.
FAKE_JAVA = """#!/bin/bash
printf '%s\\n' "$*" >>"$LOG"
case "$1" in
  @*)
    file="${1#@}"
    tr '\\n' ' ' <"$file" >>"$ARGUMENTS" && stat --format %a "$file" >>"$ARGUMENTS"
    ! grep --quiet StorageTool "$file" || touch "$KAFKA_DATA/meta.properties"
    ;;
esac
"""


EXPORTER = {"KAFKA_JMX_PORT": "9404", "KAFKA_JMX_SETTINGS": str(COMPOSE / "kafka" / "jmx.yaml")}


@dataclass(frozen=True, slots=True)
class Image:
    """The image's places, in a folder."""

    folder: Path

    def secret(self, user: str, text: str) -> None:
        (self.folder / "secrets" / f"kafka-{user}").write_text(text)

    def start(self, **variables: str) -> Outcome:
        folders = {
            "JAVA_HOME": self.folder / "jdk",
            "LOG": self.folder / "calls",
            "ARGUMENTS": self.folder / "arguments",
            "KAFKA_DATA": self.folder / "data",
            "KAFKA_SECRETS": self.folder / "secrets",
            "KAFKA_RUN_DIRECTORY": self.folder / "run",
        }
        return run_alone(("/bin/bash", COMPOSE / "kafka/entrypoint.sh"), **folders, **variables)

    @property
    def calls(self) -> list[str]:
        """The calls of Java, in order."""
        return lines_of(self.folder / "calls")

    @property
    def tools(self) -> list[str]:
        """The arguments of Kafka's tools, in order, each with the mode of the file that they were in."""
        return lines_of(self.folder / "arguments")

    @property
    def users(self) -> Path:
        """The list of users that Kafka reads."""
        return self.folder / "run" / "users.jaas"


@pytest.fixture
def image(tmp_path: Path) -> Image:
    for name in ("data", "secrets"):
        (tmp_path / name).mkdir()
    add_program(tmp_path / "jdk/bin/java", FAKE_JAVA)
    image = Image(tmp_path)
    image.secret("admin", "username=admin\npassword=first-secret\n")
    image.secret("metrics", "third-secret")
    CertificateDirectory(tmp_path / "certificates", ChangeLog("certificates")).update(["kafka"], datetime.now(UTC))
    (tmp_path / "secrets" / "tls-kafka").write_bytes((tmp_path / "certificates" / "kafka.pem").read_bytes())
    image.secret("ingest-events", "username=ingest-events\npassword=second-secret")
    return image


def test_kafkas_own_listeners_know_the_admin_alone(image: Image) -> None:
    assert image.start().returncode == 0

    text = image.users.read_text()
    assert text.count('user_admin="first-secret"') == 2
    assert "second-secret" not in text
    assert stat.S_IMODE(image.users.stat().st_mode) == 0o600


def test_the_admin_is_created_with_the_storage(image: Image) -> None:
    image.start()

    (tool,) = image.tools
    assert "--add-scram SCRAM-SHA-512=[name=admin,password=first-secret]" in tool
    assert tool.endswith(" 600")
    assert list((image.folder / "run").glob("*.arguments")) == []


def test_no_password_is_on_a_command_line(image: Image) -> None:
    image.start()

    assert not any("secret" in call for call in image.calls)


def test_the_storage_is_formatted_at_the_first_start_only(image: Image) -> None:
    image.start()
    image.start()

    assert [call.startswith("@") for call in image.calls] == [True, False, False]
    assert "StorageTool format --cluster-id=" in image.tools[0]


def test_the_exporter_and_the_published_port_are_the_callers_choice(image: Image) -> None:
    image.start()
    image.start(**EXPORTER, KAFKA_HOST_PORT="29092", KAFKA_HEAP_OPTS="-Xms1m -Xmx2m")

    assert "-javaagent" not in image.calls[1]
    assert "--override" not in image.calls[1]
    assert f"jmx_prometheus_javaagent.jar=9404:{image.folder}/run/jmx.yaml" in image.calls[2]
    assert "INTERNAL://kafka:9092,HOST://127.0.0.1:29092" in image.calls[2]
    assert "-Xms1m -Xmx2m" in image.calls[2]


def test_the_exporter_serves_https_for_one_password(image: Image) -> None:
    image.start(**EXPORTER)

    file = image.folder / "run" / "jmx.yaml"
    server = yaml.safe_load(file.read_text())["httpServer"]
    assert server["authentication"]["basic"] == {"username": "prometheus", "password": "third-secret"}
    store = server["ssl"]["keyStore"]
    key, certificate, _ = load_key_and_certificates(Path(store["filename"]).read_bytes(), store["password"].encode())
    assert key is not None
    assert certificate is not None
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(Path(store["filename"]).stat().st_mode) == 0o600


def test_connections_are_encrypted_unless_the_caller_turns_it_off(image: Image) -> None:
    image.start()
    image.start(TLS="0")

    assert "INTERNAL:SASL_SSL,HOST:SASL_SSL," in (COMPOSE / "kafka" / "server.properties").read_text()
    assert ["INTERNAL:SASL_PLAINTEXT,HOST:SASL_PLAINTEXT" in call for call in image.calls[1:]] == [False, True]


def test_records_are_synced_unless_the_caller_turns_it_off(image: Image) -> None:
    image.start()
    image.start(KAFKA_SYNC="1")
    image.start(KAFKA_SYNC="0", KAFKA_HOST_PORT="29092")

    assert "log.flush.interval.messages=1\n" in (COMPOSE / "kafka" / "server.properties").read_text()
    assert ["--override log.flush" in call for call in image.calls[1:]] == [False, False, True]
    assert "--override advertised.listeners=INTERNAL://kafka:9092" in image.calls[3]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("username=admin\n", "has no line 'password=...'"),
        ('username=admin\npassword=a"; user_eve="b\n', "may have letters, digits"),
        ("", "has no line 'username=...'"),
    ],
)
def test_a_secret_that_needs_escaping_stops_the_start(image: Image, text: str, problem: str) -> None:
    image.secret("admin", text)

    outcome = image.start()

    assert outcome.returncode == 2
    assert problem in outcome.stderr
    assert image.calls == []


def test_without_the_admins_secret_nothing_starts(image: Image) -> None:
    (image.folder / "secrets" / "kafka-admin").unlink()

    outcome = image.start()

    assert outcome.returncode == 2
    assert "kafka-admin is missing" in outcome.stderr
    assert image.calls == []
