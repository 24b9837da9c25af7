"""Hashes of the passwords of Trino's users."""

import hashlib
import subprocess
import sys

import pytest

from gamelake.model.errors import SettingsError
from services.provision.passwords import hashed

PASSWORD = "0123456789abcdef"  # noqa: S105 # of no one
CREDENTIALS = f"username=analyst\npassword={PASSWORD}\nusername=engineer\npassword=another-one-of-16\n"


def test_each_user_has_a_line_from_which_the_password_can_be_verified() -> None:
    lines = list(hashed(CREDENTIALS.splitlines(keepends=True)))

    assert [line.split(":")[0] for line in lines] == ["analyst", "engineer"]
    _, iterations, salt, found = lines[0].split(":")
    expected = hashlib.pbkdf2_hmac("sha1", PASSWORD.encode(), bytes.fromhex(salt), int(iterations), 20)
    assert bytes.fromhex(found) == expected


def test_users_of_one_password_have_different_hashes() -> None:
    one, other = hashed(["username=a", f"password={PASSWORD}", "username=b", f"password={PASSWORD}"])

    assert one.split(":")[1:] != other.split(":")[1:]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["password=secret-secret"], "line 1 of the credentials must be 'username=...'"),
        (["username=a", "username=b"], "line 2 of the credentials must be 'password=...'"),
        (["username=a", "password="], "line 2 of the credentials must be 'password=...'"),
        (["username=a:1000:00:00", "password=x"], "line 1 of the credentials must be 'username=...', without a colon"),
        (["username=a"], "the credentials of 'a' have no password"),
    ],
)
def test_malformed_credentials_are_refused_without_showing_them(lines: list[str], problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        list(hashed(lines))

    assert problem in str(raised.value)
    assert "secret-secret" not in str(raised.value)


def test_the_program_writes_all_hashes_or_none() -> None:
    command = [sys.executable, "-m", "services.provision.passwords"]

    done = subprocess.run(command, input=CREDENTIALS, capture_output=True, text=True, check=True)
    failed = subprocess.run(command, input=CREDENTIALS + "username=x\n", capture_output=True, text=True, check=False)

    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["analyst", "engineer"]
    assert PASSWORD not in done.stdout
    assert (failed.returncode, failed.stdout) == (2, "")
