"""The note of a running `make dev` in its directory: its ports, and the contracts that all its programs have read."""

import hashlib
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from tools.dev.options import FIRST_PORT, DevError

_FILE = "running.json"
_POLL_SECONDS = 0.2


class RunningDev(msgspec.Struct, frozen=True, kw_only=True):
    """The ports and contracts of a running platform, for the programs that send to it.

    Attributes:
        first_port: the first of its ports.
        contracts: the fingerprint of the contracts that all programs run with; empty until all of them run.
    """

    first_port: int = FIRST_PORT
    contracts: str = ""

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Return the note of a directory; one with the defaults if `make dev` does not run there."""
        try:
            return msgspec.json.decode((directory / _FILE).read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError):
            return cls()

    def write(self, directory: Path) -> None:
        """Replace the note of a directory."""
        unfinished = directory / f"{_FILE}.unfinished"
        unfinished.write_bytes(msgspec.json.encode(self))
        unfinished.replace(directory / _FILE)


class Readiness:
    """Reports on the terminal and in the directory's note that all programs run: after the start, and after a change.

    Args:
        first_port: the first of the ports.
        directory: of the note.
        contracts: the folder of contracts.
        report: takes a line for the terminal.
    """

    def __init__(self, first_port: int, directory: Path, contracts: Path, report: Callable[[str], None]) -> None:
        self._directory = directory
        self._folder = contracts
        self._report = report
        self._began = time.monotonic()
        self._contracts = fingerprint(contracts)
        self._changed = ""
        self._is_announced = False
        self._note = RunningDev(first_port=first_port)
        self._note.write(directory)

    def will_change(self, changed: Collection[Path]) -> None:
        """Note that programs start again because of files."""
        if self._is_announced:
            self._began, self._changed, self._is_announced = time.monotonic(), named(changed), False
        self._contracts = fingerprint(self._folder)

    def announce(self) -> bool:
        """Report once that all programs run; returns True after the first start."""
        if self._is_announced:
            return False
        self._is_announced = True
        msgspec.structs.replace(self._note, contracts=self._contracts).write(self._directory)
        seconds = time.monotonic() - self._began
        if self._changed:
            self._report(f"Ready with {self._changed}: all programs run after {seconds:.0f} s")
            return False
        self._report(f"All programs run after {seconds:.0f} s.")
        return True


def named(changed: Collection[Path]) -> str:
    """Return the name of one of some files, and how many more there are."""
    first = min(changed).name
    return first if len(changed) == 1 else f"{first} and {len(changed) - 1} more"


def forget(directory: Path) -> None:
    """Remove the note, if there is one."""
    (directory / _FILE).unlink(missing_ok=True)


def fingerprint(contracts: Path) -> str:
    """Return a digest of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(contracts.rglob("*")):
        # An editor's temporary file may be gone.
        with suppress(OSError):
            if file.is_file() and not file.name.startswith("."):
                digest.update(f"{file.relative_to(contracts)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def wait_for_contracts(directory: Path, contracts: Path, seconds: float) -> None:
    """Return once `make dev` runs with the contracts as they are now; at once where it does not run, or starts.

    The gateway would reject an event of a game or a field that it does not know yet.

    Raises:
        DevError: it still runs with other contracts after `seconds`.
    """
    latest = time.monotonic() + seconds
    while RunningDev.read(directory).contracts not in {"", fingerprint(contracts)}:
        if time.monotonic() > latest:
            raise DevError(f"make dev still runs without the last change of {contracts}: its terminal shows why")
        time.sleep(_POLL_SECONDS)
