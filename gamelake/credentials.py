"""A user name and a password, from a file that only its readers can read."""

from dataclasses import dataclass, field
from pathlib import Path

from gamelake.errors import SettingsError

_NAME, _PASSWORD = "username", "password"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who a program is to a server. Safe to print."""

    username: str
    password: str = field(repr=False)


def read_credentials(file: Path, setting: str) -> Credentials:
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
    return Credentials(found[_NAME], found[_PASSWORD])
