"""Trino starts with HTTPS and with passwords, unless the caller turns both off for comparisons."""

import re
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import add_program
from tests.unit.compose.configured import COMPOSE

SECRET = "0123456789abcdef"  # noqa: S105 # of no Trino
CLIENT_SECRET = r"7~x\&${y}|.Z"  # noqa: S105 # of no provider, with the characters that providers use and more
PROVIDER = {
    "OIDC_ISSUER": "https://provider.example/realm",
    "OIDC_CLIENT_ID": "trino",
    "OIDC_PRINCIPAL": "email",
    "OIDC_USER_SUFFIX": "",
    "OIDC_SCOPES": "openid",
    "OIDC_AUDIENCES": "",
}
OAUTH2 = "http-server.authentication.oauth2."
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
        """Start. Return Trino's settings."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "LOG": str(self.folder / "log"),
            "TRINO_SETTINGS": str(COMPOSE / "trino/etc"),
            "TRINO_SECRETS": str(self.folder),
            "TRINO_HOME": str(self.folder / "home"),
            "TRINO_RUN_DIRECTORY": str(self.folder / "run"),
            **variables,
        }
        command = ("/bin/bash", str(COMPOSE / "trino/entrypoint.sh"))
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
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
    add_program(tmp_path / "home/bin/launcher", FAKE_LAUNCHER)
    (tmp_path / "run").mkdir()
    (tmp_path / "trino-internal").write_text(SECRET)
    (tmp_path / "oidc-client").write_text(f"{CLIENT_SECRET}\n")
    (tmp_path / "kafka-trino").write_text(f"username=trino\npassword={PASSWORD}\n")
    return Image(tmp_path)


def test_trino_listens_by_https_only_and_requires_passwords(image: Image) -> None:
    settings = image.start()

    assert settings["http-server.http.enabled"] == "false"
    assert settings["http-server.https.enabled"] == "true"
    assert settings["http-server.authentication.type"] == "PASSWORD"
    assert settings["internal-communication.https.required"] == "true"
    assert "http-server.http.port" not in settings


def test_the_day_of_a_query_is_the_platforms_wherever_the_client_is(image: Image) -> None:
    assert image.start()["sql.forced-session-time-zone"] == "UTC"


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


def test_without_a_provider_there_is_no_setting_of_one(image: Image) -> None:
    assert not [name for name in image.start() if "oauth2" in name]


def test_with_a_provider_passwords_stay_and_its_tokens_are_verified_by_trino_itself(image: Image) -> None:
    settings = image.start(**PROVIDER)

    assert settings["http-server.authentication.type"] == "PASSWORD,OAUTH2"
    assert settings[f"{OAUTH2}issuer"] == "${ENV:OIDC_ISSUER}"
    assert settings[f"{OAUTH2}oidc.use-userinfo-endpoint"] == "false"
    assert f"{OAUTH2}additional-audiences" not in settings
    assert image.start(**PROVIDER | {"OIDC_AUDIENCES": "api://x"})[f"{OAUTH2}additional-audiences"] == "api://x"


def test_the_secret_of_trino_as_a_client_is_only_in_a_file_that_no_other_user_reads(image: Image) -> None:
    settings = image.start(**PROVIDER)

    assert settings[f"{OAUTH2}client-secret"] == CLIENT_SECRET.replace("\\", "\\\\")
    assert stat.S_IMODE((image.folder / "run/config.properties").stat().st_mode) == 0o600
    assert CLIENT_SECRET not in image.command


@pytest.mark.parametrize(
    ("suffix", "name", "user"),
    [
        ("", "analyst", "analyst"),
        ("", "analyst-kart-rumble", "analyst-kart-rumble"),
        ("", "visitor", None),
        ("", "catalog", None),
        ("", "xanalyst", None),
        ("", "analyst@other.example", None),
        ("@studio.example", "analyst@studio.example", "analyst"),
        ("@studio.example", "analyst", None),
        ("@studio.example", "analyst@studio-example", None),
        ("@studio.example", "analyst@studio.example.other", None),
    ],
)
def test_a_name_at_the_provider_is_that_of_a_person_with_the_suffix(
    image: Image, suffix: str, name: str, user: str | None
) -> None:
    """Trino takes the first group of a pattern that matches the whole name."""
    found = re.fullmatch(image.start(**PROVIDER | {"OIDC_USER_SUFFIX": suffix})[f"{OAUTH2}user-mapping.pattern"], name)

    assert (found[1] if found else None) == user


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"OIDC_ISSUER": "http://provider.example"}, "it must begin with https://"),
        ({"OIDC_USER_SUFFIX": ".*"}, "OIDC_USER_SUFFIX is '.*'"),
    ],
)
def test_a_setting_that_would_let_others_in_is_refused(image: Image, changed: dict[str, str], problem: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        image.start(**PROVIDER | changed)

    assert problem in failure.value.stderr
    assert not (image.folder / "log").exists()


def test_a_client_secret_of_several_lines_is_refused_and_not_shown(image: Image) -> None:
    (image.folder / "oidc-client").write_text(f"{CLIENT_SECRET}\nhttp-server.authentication.type=INSECURE\n")

    with pytest.raises(subprocess.CalledProcessError) as failure:
        image.start(**PROVIDER)

    assert failure.value.stderr == "trino: the secret oidc-client is empty, or has more than one line\n"
