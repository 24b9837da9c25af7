"""The provider for trying logins starts with a realm that has the client and the people with their passwords."""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import add_program
from tests.unit.compose.configured import COMPOSE

CLIENT_SECRET = "0123456789abcdef"  # noqa: S105 # of no provider
FAKE_KEYCLOAK = """#!/bin/bash
echo "$*" >"$LOG"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in place of the image's, in which Keycloak has been started."""
    add_program(tmp_path / "home/bin/kc.sh", FAKE_KEYCLOAK)
    (tmp_path / "oidc-client").write_text(CLIENT_SECRET)
    for file, user in (("trino-analyst", "analyst"), ("trino-support", "support"), ("keycloak-visitor", "visitor")):
        (tmp_path / file).write_text(f"username={user}\npassword=password-of-{user}\n")
    environment = {
        "PATH": "/usr/bin:/bin",
        "LOG": str(tmp_path / "log"),
        "KEYCLOAK_REALM": str(COMPOSE / "keycloak/realm.json"),
        "KEYCLOAK_SECRETS": str(tmp_path),
        "KEYCLOAK_HOME": str(tmp_path / "home"),
        "KEYCLOAK_DATA": str(tmp_path / "data"),
        "KEYCLOAK_HOST": "identity.localhost:8443",
        "TRINO_PORT": "8085",
    }
    subprocess.run(("/bin/bash", str(COMPOSE / "keycloak/entrypoint.sh")), env=environment, check=True)
    return tmp_path


def realm(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "data/import/realm.json").read_text())
    return made


def test_people_have_the_passwords_of_their_files(folder: Path) -> None:
    passwords = {user["username"]: user["credentials"][0]["value"] for user in realm(folder)["users"]}

    assert passwords == {user: f"password-of-{user}" for user in ("analyst", "support", "visitor")}


def test_trino_is_the_only_client_and_gets_codes_at_its_own_addresses_only(folder: Path) -> None:
    (client,) = realm(folder)["clients"]

    assert (client["clientId"], client["secret"]) == ("trino", CLIENT_SECRET)
    assert (client["publicClient"], client["directAccessGrantsEnabled"]) == (False, False)
    assert client["redirectUris"] == [f"https://{host}:8085/oauth2/callback" for host in ("localhost", "127.0.0.1")]


def test_secrets_are_on_no_command_line_and_in_a_file_that_no_other_user_reads(folder: Path) -> None:
    command = (folder / "log").read_text()

    assert "--hostname=https://identity.localhost:8443 --https-port=8443" in command
    assert CLIENT_SECRET not in command
    assert "password-of" not in command
    assert stat.S_IMODE((folder / "data/import/realm.json").stat().st_mode) == 0o600
