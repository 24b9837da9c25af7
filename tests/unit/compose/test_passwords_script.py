"""Hashing the passwords of Trino's users: none is on a command line, and only a new password is hashed again."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, lines_of, run_alone
from tests.unit.compose.configured import COMPOSE

# Instead of the container: notes how it was called, and prints a line for each user.
FAKE_DOCKER = """#!/bin/bash
echo "$*" >>"$LOG"
paste -d ' ' - -
exit "${FAILING:-0}"
"""


@dataclass(frozen=True, slots=True)
class Passwords:
    """A copy of the script, secrets, and a docker that notes how it was called."""

    folder: Path

    @property
    def hashes(self) -> Path:
        """The file that Trino gets."""
        return self.folder / "compose/secrets/trino-password-hashes"

    @property
    def calls(self) -> list[str]:
        """The command lines of docker."""
        return lines_of(self.folder / "log")

    def run(self, **variables: str) -> Outcome:
        return run_alone(
            (self.folder / "compose/passwords.sh",), self.folder / "bin", LOG=self.folder / "log", **variables
        )


@pytest.fixture
def passwords(tmp_path: Path) -> Passwords:
    """Two users, Prometheus, and a secret that belongs to no user."""
    secrets = tmp_path / "compose/secrets"
    secrets.mkdir(parents=True)
    for name in ("passwords.sh", "read_env.sh", ".env"):
        shutil.copy(COMPOSE / name, tmp_path / "compose")
    for user in ("analyst", "engineer"):
        (secrets / f"trino-{user}").write_text(f"username={user}\npassword=secret-of-{user}\n")
    (secrets / "trino-prometheus").write_text("secret-of-prometheus")
    (secrets / "trino-internal").write_text("secret-of-trino")
    (secrets / "object-store-metrics").write_text(
        "aws_access_key_id = gamelake-metrics\naws_secret_access_key = secret-of\n"
    )
    add_program(tmp_path / "bin/docker", FAKE_DOCKER)
    return Passwords(tmp_path)


def test_each_users_credentials_are_handed_over_and_none_is_on_a_command_line(passwords: Passwords) -> None:
    outcome = passwords.run()

    assert outcome.returncode == 0, outcome.stderr
    assert passwords.hashes.read_text().splitlines() == [
        f"username={user} password=secret-of-{user}" for user in ("analyst", "engineer", "prometheus")
    ]
    assert "secret-of" not in passwords.calls[0] + outcome.stdout + outcome.stderr


def test_a_second_run_hashes_nothing(passwords: Passwords) -> None:
    passwords.run()
    outcome = passwords.run()

    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert len(passwords.calls) == 2


def test_a_new_password_is_hashed(passwords: Passwords) -> None:
    passwords.run()
    file = passwords.hashes.with_name("trino-engineer")
    file.write_text("username=engineer\npassword=another\n")
    later = passwords.hashes.stat().st_mtime + 1
    os.utime(file, (later, later))

    passwords.run()

    assert "password=another" in passwords.hashes.read_text()


def test_a_user_whose_secret_is_removed_loses_the_hash(passwords: Passwords) -> None:
    passwords.run()
    passwords.hashes.with_name("trino-engineer").unlink()

    passwords.run()

    assert "engineer" not in passwords.hashes.read_text()


def test_a_failure_leaves_the_hashes_as_they_were(passwords: Passwords) -> None:
    assert passwords.run(FAILING="2").returncode == 2
    assert not passwords.hashes.exists()
