"""Access to Trino: which user and password a program has, and that no message shows the password."""

import re
from pathlib import Path

import pytest

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.trino import TrinoAccess, trino_access

URL = {"GAMELAKE_TRINO_URL": "https://trino:8080"}


def access_by(variables: dict[str, str]) -> TrinoAccess:
    return trino_access(
        Environment({**URL, **variables}),
        url="GAMELAKE_TRINO_URL",
        credentials_file="GAMELAKE_TRINO_CREDENTIALS_FILE",
        user="GAMELAKE_TRINO_USER",
        default_user="analyst",
    )


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """A file as compose/secrets.sh makes it."""
    file = tmp_path / "trino-catalog"
    file.write_text("username=catalog\npassword=0123456789abcdef\n")
    return file


def test_user_and_password_come_from_the_file(credentials: Path) -> None:
    access = access_by({"GAMELAKE_TRINO_CREDENTIALS_FILE": str(credentials), "GAMELAKE_TRINO_USER": "another"})

    assert access == TrinoAccess("trino", 8080, "https", "catalog", "0123456789abcdef")
    assert "0123456789abcdef" not in repr(access)


@pytest.mark.parametrize(("variables", "user"), [({}, "analyst"), ({"GAMELAKE_TRINO_USER": "engineer"}, "engineer")])
def test_without_a_file_there_is_a_user_without_a_password(variables: dict[str, str], user: str) -> None:
    access = access_by(variables)

    assert (access.user, access.password) == (user, "")


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(SettingsError, match="GAMELAKE_TRINO_CREDENTIALS_FILE is '/missing', which can't be read"):
        access_by({"GAMELAKE_TRINO_CREDENTIALS_FILE": "/missing"})


@pytest.mark.parametrize("url", ["trino:8080", "ftp://trino", "https://", "https://trino/path", "https://trino:port"])
def test_a_malformed_address_is_named(url: str) -> None:
    with pytest.raises(SettingsError, match=f"GAMELAKE_TRINO_URL is '{re.escape(url)}'; it must be like https://"):
        access_by({"GAMELAKE_TRINO_URL": url})


@pytest.mark.parametrize(("url", "port"), [("http://trino", 80), ("https://trino/", 443), ("https://[::1]:8443", 8443)])
def test_an_address_without_a_port_has_that_of_its_scheme(url: str, port: int) -> None:
    assert TrinoAccess.parse(url, "analyst").port == port


@pytest.mark.parametrize(("scheme", "sends"), [("https", True), ("http", False)])
def test_a_password_is_sent_by_https_only(scheme: str, *, sends: bool) -> None:
    connection = TrinoAccess("127.0.0.1", 1, scheme, "analyst", "0123456789abcdef").connect("tests")

    assert (connection.auth is not None) is sends
