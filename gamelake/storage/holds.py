"""Holds: a game whose gold tables are to stay as they are, as what they would be made of has failed a validation."""

import logging
from collections.abc import Mapping
from datetime import date, datetime

import msgspec
from obstore.exceptions import PermissionDeniedError

from gamelake.model.naming import HOLDS_FOLDER, hold_path
from gamelake.storage.store import Store

log = logging.getLogger(__name__)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a game's gold back, since when, and why.

    Attributes:
        day: the day of events that failed.
        until: when it ends by itself; None: with a validation that passes, or by a person.
    """

    game: str
    by: str
    since: datetime
    day: date
    why: str
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Whether it has ended by itself."""
        return self.until is not None and now >= self.until


def hold_back(store: Store, hold: Hold) -> None:
    """Hold a game's gold back from now on; a hold that is there already is replaced."""
    store.put(hold_path(hold.game), msgspec.json.encode(hold))


def release(store: Store, game: str) -> bool:
    """Let a game's gold go on; gives whether it was held."""
    was_held = store.get(hold_path(game)) is not None
    store.delete(hold_path(game))
    return was_held


def holds(store: Store, now: datetime) -> Mapping[str, Hold]:
    """The holds that are in force, by game; one that can't be read is said, and holds."""
    found = {}
    for path in store.paths(HOLDS_FOLDER):
        hold = _read(store, path, now)
        if hold is not None and not hold.is_over(now):
            found[hold.game] = hold
    return found


def _read(store: Store, path: str, now: datetime) -> Hold | None:
    """A hold; None if it was released meanwhile."""
    try:
        content = store.get(path)
        return None if content is None else msgspec.json.decode(content, type=Hold)
    except (msgspec.DecodeError, PermissionDeniedError) as error:
        log.warning("%s can't be read: %s", path, error)
        game = path.rpartition("/")[2].removesuffix(".json")
        return Hold(game=game, by="nobody knows", since=now, day=now.date(), why="the hold can't be read")
