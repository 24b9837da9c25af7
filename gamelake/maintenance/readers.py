"""Who still needs older versions of a table, and since when: no retention may be shorter."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gamelake.errors import StartupError


class RetentionError(StartupError):
    """A retention would take files away that somebody still needs."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads versions of a table that were the newest at some moment since then."""

    name: str
    since: datetime


def require_kept(table: str, since: datetime, readers: Iterable[Reader]) -> None:
    """See that a retention leaves everybody what they need.

    Raises:
        RetentionError: it does not; names who, and what to do.
    """
    for reader in readers:
        if reader.since < since:
            raise RetentionError(
                f"{table}: {reader.name} needs its versions since {reader.since:%Y-%m-%d %H:%M}, and the retention "
                f"keeps those since {since:%Y-%m-%d %H:%M}. Keep more, or say --force {table} if nobody does"
            )
