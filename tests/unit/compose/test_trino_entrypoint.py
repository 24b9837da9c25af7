"""How Trino is started: by HTTPS and with passwords, unless the caller turns both off for comparisons."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.compose.configured import COMPOSE

SECRET = "0123456789abcdef"  # noqa: S105 # of no Trino
PASSWORD = "fedcba9876543210"  # noqa: S105 # of no Kafka
# Instead of Trino: notes its command line, and whether it has the secret.
FAKE_LAUNCHER = """#!/bin/bash
echo "$*" >"$LOG"
echo "${TRINO_SHARED_SECRET:-none}" >"$LOG.secret"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """The entrypoint with the committed settings and a launcher that starts nothing."""

    folder: Path

    def start(self, **variables: str) -> dict[str, str]:
        """Start; gives Trino's settings."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "LOG": str(self.folder / "log"),
            "TRINO_SETTINGS": str(COMPOSE / "trino/etc"),
            "TRINO_SECRETS": str(self.folder),
            "TRINO_HOME": str(self.folder / "home"),
            "TRINO_RUN_DIRECTORY": str(self.folder / "run"),
            **variables,
        }
        subprocess.run(("/bin/bash", str(COMPOSE / "trino/entrypoint.sh")), env=environment, check=True)
        lines = (self.folder / "run/config.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    @property
    def command(self) -> str:
        """The launcher's command line."""
        return (self.folder / "log").read_text()

    @property
    def variable(self) -> str:
        """What Trino has in the variable of its secret."""
        return (self.folder / "log.secret").read_text().strip()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """A folder in place of the image's."""
    launcher = tmp_path / "home/bin/launcher"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(FAKE_LAUNCHER)
    launcher.chmod(0o755)
    (tmp_path / "run").mkdir()
    (tmp_path / "trino-internal").write_text(SECRET)
    (tmp_path / "kafka-trino").write_text(f"username=trino\npassword={PASSWORD}\n")
    return Image(tmp_path)


def test_trino_listens_by_https_only_and_requires_passwords(image: Image) -> None:
    settings = image.start()

    assert settings["http-server.http.enabled"] == "false"
    assert settings["http-server.https.enabled"] == "true"
    assert settings["http-server.authentication.type"] == "PASSWORD"
    assert settings["internal-communication.https.required"] == "true"
    assert "http-server.http.port" not in settings


def test_its_requests_to_itself_are_signed_with_a_secret_that_no_command_line_shows(image: Image) -> None:
    settings = image.start()

    assert settings["internal-communication.shared-secret"] == "${ENV:TRINO_SHARED_SECRET}"
    assert image.variable == SECRET
    assert SECRET not in image.command


def test_without_tls_it_listens_in_the_clear_and_requires_none(image: Image) -> None:
    settings = image.start(TLS="0")

    assert settings["http-server.http.port"] == "8080"
    assert not [name for name in settings if "https" in name or "authentication" in name]
    assert image.variable == "none"


@pytest.mark.parametrize(("tls", "protocol"), [("1", "SASL_SSL"), ("0", "SASL_PLAINTEXT")])
def test_the_audits_password_is_in_a_file_for_trino_alone_and_not_among_what_the_listener_logs(
    image: Image, tls: str, protocol: str
) -> None:
    image.start(TLS=tls)

    login, client = image.folder / "run/kafka-jaas.conf", image.folder / "run/audit-producer.properties"
    assert f'username="trino" password="{PASSWORD}"' in login.read_text()
    assert login.stat().st_mode & 0o777 == 0o600
    assert client.read_text().splitlines()[-1] == f"security.protocol={protocol}"
    assert PASSWORD not in client.read_text() + image.command


def test_it_starts_again_after_it_was_killed(image: Image) -> None:
    image.start()
    (image.folder / "run/trino.pid").write_text("1")

    image.start()

    assert not (image.folder / "run/trino.pid").exists()
    plugins = {each.name for each in (image.folder / "run/plugins").iterdir()}
    assert plugins == {"delta-lake", "kafka-event-listener", "password-authenticators"}
