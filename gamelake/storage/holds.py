"""Holds: while a game has one, its gold tables are not refreshed, because their source has failed a validation."""

from collections.abc import Mapping
from datetime import date, datetime

import msgspec
from obstore.exceptions import PermissionDeniedError

from gamelake.model.logs import event_logger
from gamelake.model.naming import HOLDS_FOLDER, hold_path
from gamelake.storage.store import Store

log = event_logger(__name__)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """The hold on a game's gold tables.

    Attributes:
        by: the person or program that set it.
        day: the day of events that failed.
        why: the reason, for people.
        until: when it expires; None: it ends with a validation that passes, or when an operator releases it.
    """

    game: str
    by: str
    since: datetime
    day: date
    why: str
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Whether it has expired."""
        return self.until is not None and now >= self.until


def hold_back(store: Store, hold: Hold) -> None:
    """Set the hold on a game's gold tables; replaces the game's hold if it has one."""
    store.put(hold_path(hold.game), msgspec.json.encode(hold))


def release(store: Store, game: str) -> bool:
    """Release a game's gold tables; gives whether they were held."""
    was_held = store.get(hold_path(game)) is not None
    store.delete(hold_path(game))
    return was_held


def holds(store: Store, now: datetime) -> Mapping[str, Hold]:
    """The holds in force, by game; one that can't be read is logged, and holds."""
    found = {}
    for path in store.paths(HOLDS_FOLDER):
        hold = _read(store, path, now)
        if hold is not None and not hold.is_over(now):
            found[hold.game] = hold
    return found


def _read(store: Store, path: str, now: datetime) -> Hold | None:
    """A hold; None if it has been released meanwhile."""
    try:
        content = store.get(path)
        return None if content is None else msgspec.json.decode(content, type=Hold)
    except (msgspec.DecodeError, PermissionDeniedError) as error:
        log.warning("hold_unreadable", path=path, error=error, action="the game's gold stays held back")
        game = path.rpartition("/")[2].removesuffix(".json")
        return Hold(game=game, by="unknown", since=now, day=now.date(), why="the hold can't be read")
