"""Credentials: a user name and a password, read from a file and read again when the file changes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger

_NAME, _PASSWORD = "username", "password"
log = event_logger(__name__)
Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """A user name and a password; `repr` leaves out the password."""

    username: str
    password: str = field(repr=False)


def read_credentials(file: Path, setting: str) -> ServerCredentials:
    """Read a file of two lines, `username=...` and `password=...`.

    Args:
        file: the file.
        setting: the setting that names the file, for messages.

    Raises:
        SettingsError: the file can't be read, or has another form; the message names it, without its content.
    """
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{setting} is '{file}', which can't be read") from error
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if len(lines) != len(found) or found.keys() != {_NAME, _PASSWORD} or not all(found.values()):
        raise SettingsError(f"{setting} is '{file}', which must hold two lines, '{_NAME}=...' and '{_PASSWORD}=...'")
    return ServerCredentials(found[_NAME], found[_PASSWORD])


class WatchedFile(Generic[Content]):
    """A file's content, read again when the file changes; safe for any number of threads.

    After a change for the worse, the last good content stays.

    Args:
        file: the file.
        read: parses the file; raises SettingsError for a bad one, which the constructor raises and `refresh` logs.
        name: of the content in log lines, in the plural.
    """

    def __init__(self, file: Path, read: Callable[[Path], Content], name: str) -> None:
        self._file = file
        self._read = read
        self._name = name
        self._state = _state_of(file)
        self._content = read(file)
        self._lock = threading.Lock()

    @property
    def now(self) -> Content:
        """The content as of the last refresh."""
        return self._content

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        with self._lock:
            state = _state_of(self._file)
            if state == self._state:
                return
            self._state = state
            try:
                self._content = self._read(self._file)
                log.info("credentials_reloaded", credentials=self._name)
            except SettingsError as error:
                log.warning(
                    "credentials_rejected",
                    credentials=self._name,
                    error=error,
                    action="the previous ones stay in use; correct the file",
                )


def _state_of(file: Path) -> tuple[int, int, int]:
    """Differs after each change of content, even when a clock stands still or a file is moved in place."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_ino, found.st_size)
