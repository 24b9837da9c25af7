"""Holds: while a silver table has a hold, the gold tables that read it are not refreshed.

Each day of a table that failed a validation has its own hold. It is released when the failed checks pass.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import msgspec
from obstore.exceptions import PermissionDeniedError

from gamelake.model.logs import event_logger
from gamelake.model.naming import HOLDS_FOLDER
from gamelake.objects.records import Records
from gamelake.objects.store import Store

log = event_logger(__name__)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """The hold of one day of a table.

    Attributes:
        table: the silver table that failed a validation.
        day: the day of events that failed.
        by: the person or program that set the hold.
        since: when the hold was set.
        checks: the failed checks. The hold is released once they pass; if empty, only an operator releases it.
        why: the reason, for operators.
        until: when the hold expires. If None, it ends with a validation that passes, or when an operator releases it.
    """

    table: str
    day: date
    by: str
    since: datetime
    checks: tuple[str, ...] = ()
    why: str
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Return True if the hold has expired."""
        return self.until is not None and now >= self.until


def hold_back(store: Store, hold: Hold) -> None:
    """Set the hold of a table's day, or replace that day's hold."""
    _records(store, hold.table).put(f"{hold.day}", hold)


def release(store: Store, table: str, day: date | None = None) -> int:
    """Release all days of a table, or one day; return the number of released holds."""
    records = _records(store, table)
    held = [name for name in records.names() if day is None or name == f"{day}"]
    for name in held:
        records.delete(name)
    return len(held)


def hold_of(store: Store, table: str, day: date, now: datetime) -> Hold | None:
    """Return the hold of a table's day, None if no hold is in force.

    A hold that can't be read is logged, and is in force.
    """
    hold = _read(store, table, f"{day}", now)
    return None if hold is None or hold.is_over(now) else hold


def holds(store: Store, now: datetime) -> Mapping[str, Sequence[Hold]]:
    """Return the holds in force by table, the oldest day first.

    A hold that can't be read is logged, and is in force.
    """
    found: dict[str, list[Hold]] = {}
    for path in store.paths(HOLDS_FOLDER):
        table, _, name = path.removeprefix(f"{HOLDS_FOLDER}/").removesuffix(".json").rpartition("/")
        hold = _read(store, table, name, now)
        if hold is not None and not hold.is_over(now):
            found.setdefault(hold.table, []).append(hold)
    return found


def _records(store: Store, table: str) -> Records[Hold]:
    return Records(store, f"{HOLDS_FOLDER}/{table}", Hold)


def _read(store: Store, table: str, name: str, now: datetime) -> Hold | None:
    """Read a hold; return None if it does not exist, or has been released in the meantime."""
    records = _records(store, table)
    try:
        return records.read(name)
    except (msgspec.DecodeError, PermissionDeniedError) as error:
        log.warning("hold_unreadable", path=records.path(name), error=error, action="the table's gold stays held back")
        return Hold(table=table, day=_day(name, now), by="unknown", since=now, why="the hold can't be read")


def _day(name: str, now: datetime) -> date:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return now.date()
