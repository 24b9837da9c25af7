"""The access to the vault: the path of a file, or the URI and credentials of a database."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from gamelake.model.credentials import ServerCredentials, read_credentials
from gamelake.model.errors import SettingsError

PLACE_SETTING = "GAMELAKE_VAULT"
CREDENTIALS_SETTING = "GAMELAKE_VAULT_CREDENTIALS_FILE"
_POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class VaultAccess:
    """The path of an SQLite file, or the URI of a PostgreSQL database and its credentials. Safe to print."""

    place: str
    credentials: ServerCredentials | None = None

    @classmethod
    def of(cls, place: str, credentials_file: Path | str | None) -> Self:
        """Return the access that two settings name.

        Raises:
            SettingsError: the URI is invalid or has a password, or the file of credentials is invalid.
        """
        if place.startswith(_POSTGRES):
            _check_uri(place)
        elif "://" in place:
            raise SettingsError(f"{PLACE_SETTING} must be the path of a file or start with postgresql://")
        credentials = read_credentials(Path(credentials_file), CREDENTIALS_SETTING) if credentials_file else None
        return cls(place, credentials)

    @property
    def file(self) -> Path | None:
        """The path of the file, if it is one."""
        return None if self.place.startswith(_POSTGRES) else Path(self.place)


def _check_uri(uri: str) -> None:
    # Errors never quote the URI: it may have a password.
    try:
        parts = conninfo_to_dict(uri)
    except ProgrammingError:
        raise SettingsError(f"{PLACE_SETTING} starts with postgresql:// and can't be read as its URI") from None
    if "password" in parts:
        raise SettingsError(f"{PLACE_SETTING} has a password in it; put it into the file {CREDENTIALS_SETTING} names")
