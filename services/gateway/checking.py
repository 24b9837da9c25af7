"""What an event must be beyond its types, and what the platform itself writes into it."""

import re
from collections.abc import Callable
from datetime import datetime

from google.protobuf.message import Message

from gamelake.contracts.games import EventTimeLimits, GameSpec
from services.gateway.rejections import Reason, RejectedError

_NANOS_PER_MICRO = 1000
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_is_uuid: Callable[[str], object] = _UUID.fullmatch


class Checker:
    """Checks the events of one request, all of one game and one moment (seconds since 1970)."""

    def __init__(self, game: GameSpec, limits: EventTimeLimits, now: datetime) -> None:
        self._names = frozenset(game.match)
        self._name = game.game_name
        self._now_seconds, self._now_nanos = int(now.timestamp()), now.microsecond * _NANOS_PER_MICRO
        seconds = now.timestamp()
        self._earliest = seconds - limits.max_age.total_seconds()
        self._latest = seconds + limits.max_ahead.total_seconds()

    def check(self, event: Message) -> None:
        """Write the game's name and the time of arrival into an event that may pass.

        Raises:
            RejectedError: it may not.
        """
        _require_texts(event)
        self._check_time(event)
        name: str = event.game_name  # type: ignore[attr-defined] # the contract's messages are made at run time
        if name and name not in self._names:
            raise RejectedError(Reason.OTHER_GAME, "game_name")
        if not name:
            event.game_name = self._name  # type: ignore[attr-defined]
        arrival = event.ingest_time  # type: ignore[attr-defined]
        arrival.seconds, arrival.nanos = self._now_seconds, self._now_nanos

    def _check_time(self, event: Message) -> None:
        if not event.HasField("event_time"):
            raise RejectedError(Reason.NO_EVENT_TIME, "event_time")
        seconds: int = event.event_time.seconds  # type: ignore[attr-defined]
        if not self._earliest <= seconds <= self._latest:
            raise RejectedError(Reason.IMPLAUSIBLE_EVENT_TIME, "event_time")


def _require_texts(event: Message) -> None:
    if not _is_uuid(event.event_id):  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_EVENT_ID, "event_id")
    if not event.event_name:  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_EVENT_NAME, "event_name")
    if not event.gamer_id:  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_GAMER_ID, "gamer_id")
