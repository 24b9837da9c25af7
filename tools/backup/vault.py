"""The vault's ciphertext and wrapped keys, by the jobs that save it and put it back; the keys stay with their owner."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.errors import BackupError
from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE

_SECONDS = 3_600
_TOLD = 500


class VaultPart:
    """A vault that programs on this machine reach."""

    name = "vault"
    file = "vault.zst"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def save(self, folder: Path) -> None:
        """Write the backup.

        Raises:
            BackupError: the job failed.
        """
        _run((sys.executable, "-m", "jobs.backup_vault", str(folder / self.file)), Piped(), self._environment)

    def is_empty(self) -> bool:
        """Always: whoever is there stays, and whoever was erased stays erased."""
        return True

    def put_back(self, folder: Path) -> str:
        """Put back whoever is not there.

        Raises:
            BackupError: the job failed.
        """
        command = (sys.executable, "-m", "jobs.restore_vault", str(folder / self.file))
        _run(command, Piped(), self._environment)
        return "whoever was not there, and was not erased"


class StackVaultPart(VaultPart):
    """The stack's vault, which only its containers reach."""

    def __init__(self) -> None:
        super().__init__({})

    def save(self, folder: Path) -> None:
        """Write the backup, through the container's standard output."""
        script = "python -m jobs.backup_vault /tmp/vault >&2 && cat /tmp/vault"
        with (folder / self.file).open("wb") as out:
            _run(_in_the_stack(script), Piped(to=out.fileno()), {})

    def put_back(self, folder: Path) -> str:
        """Put back whoever is not there, through the container's standard input."""
        script = "cat >/tmp/vault && python -m jobs.restore_vault /tmp/vault"
        with (folder / self.file).open("rb") as content:
            _run(_in_the_stack(script), Piped(given=content.fileno()), {})
        return "whoever was not there, and was not erased"


@dataclass(frozen=True, slots=True)
class Piped:
    """The files that a program reads from and writes to."""

    given: int = subprocess.DEVNULL
    to: int = subprocess.DEVNULL


def _in_the_stack(script: str) -> tuple[str, ...]:
    return (str(COMPOSE / "stack.sh"), "run", "--rm", "--no-deps", "--no-TTY", "privacy", "bash", "-c", script)


def _run(command: Sequence[str], piped: Piped, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=REPOSITORY, env=dict(environment) or None, stdin=piped.given, stdout=piped.to,
        stderr=subprocess.PIPE, timeout=_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        told = done.stderr.decode(errors="replace")[-_TOLD:]
        raise BackupError(f"{' '.join(command)} ended with {done.returncode}: {told}")
