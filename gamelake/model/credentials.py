"""A user name and a password, from a file that only its readers can read."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from gamelake.model.errors import SettingsError

_NAME, _PASSWORD = "username", "password"


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """Who a program is to a server. Safe to print."""

    username: str
    password: str = field(repr=False)


def read_credentials(file: Path, setting: str) -> ServerCredentials:
    """Read a file of two lines, `username=...` and `password=...`, which a setting names.

    Raises:
        SettingsError: the file can't be read, or is not made so; names it, and says nothing of what it holds.
    """
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{setting} is '{file}', which can't be read") from error
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if len(lines) != len(found) or found.keys() != {_NAME, _PASSWORD} or not all(found.values()):
        raise SettingsError(f"{setting} is '{file}', which must hold two lines, '{_NAME}=...' and '{_PASSWORD}=...'")
    return ServerCredentials(found[_NAME], found[_PASSWORD])


log = logging.getLogger(__name__)

Content = TypeVar("Content")


class WatchedFile(Generic[Content]):
    """A file's content, for any number of threads; one that was changed for the worse leaves it as it was.

    `read` raises SettingsError for a bad file: the first time to whoever makes this, later on it is logged. `name` is
    what the content is called there, in the plural.
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
        """The content as it was when the file was last looked at."""
        return self._content

    def refresh(self) -> None:
        """Look whether the file has changed, and take what it says now."""
        with self._lock:
            state = _state_of(self._file)
            if state == self._state:
                return
            self._state = state
            try:
                self._content = self._read(self._file)
                log.info("%s were read again", self._name)
            except SettingsError as error:
                log.warning("%s stay as they were: %s", self._name, error)


def _state_of(file: Path) -> tuple[int, int, int]:
    """What differs once another content stands there, even when a clock stands still or a file is moved in place."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_ino, found.st_size)
