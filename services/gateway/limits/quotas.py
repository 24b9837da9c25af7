"""Quotas: events and bytes that a key may send in a day (UTC), counted over all processes of the gateway.

Each process writes what it has accepted to a file of its own, and reads those of the others, at each refresh. Between
two of them the others may accept as much again: a quota is exceeded by the events of two seconds at most.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import msgspec

from services.gateway import metrics
from services.gateway.authentication import GameKey
from services.gateway.errors import RateLimitedError

_DAY_SECONDS = 86_400


class Usage(msgspec.Struct):
    """The used part of a key's quota: accepted events, and the bytes of their bodies as they were sent."""

    events: int = 0
    bytes: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(self.events + other.events, self.bytes + other.bytes)

    def ratio(self, key: GameKey) -> float:
        """Return the used share of the key's quota, of events or of bytes, whichever is greater; 0 without a quota."""
        limits = ((self.events, key.quota.events), (self.bytes, key.quota.bytes)) if key.quota else ()
        return max((used / limit for used, limit in limits if limit is not None), default=0.0)


class _DayFile(msgspec.Struct, frozen=True):
    """The events that one process has accepted on a day (since 1970), by key id."""

    day: int
    usage: Mapping[str, Usage]


@dataclass(slots=True)
class Quotas:
    """The quotas of all keys, in one process; times are seconds since 1970.

    Args:
        directory: the directory that the gateway's processes share; None for a single process.
    """

    directory: Path | None
    _file_name: str = field(default_factory=lambda: f"{uuid.uuid4().hex}.json")
    _day: int = 0
    _own: dict[str, Usage] = field(default_factory=dict)
    _others: dict[str, Usage] = field(default_factory=dict)
    _is_written: bool = True

    @contextmanager
    def reserved(self, key: GameKey, events: int, size: int, now: float) -> Iterator[None]:
        """Count the events of a request and the bytes of its body; they don't count if the block fails.

        Raises:
            RateLimitedError: they are more than the rest of the key's quota.
        """
        if key.quota is None:
            yield
            return
        self._begin_day(now)
        added = Usage(events, size)
        if self._used(key.id).plus(added).ratio(key) > 1:
            left = timedelta(seconds=_DAY_SECONDS - now % _DAY_SECONDS)
            raise RateLimitedError(
                "the key's quota does not suffice for these events; it is renewed at 00:00 UTC", left
            )
        self._add(key.id, added)
        try:
            yield
        except BaseException:
            # On another day than the one that it was counted on, there is nothing to return.
            if self._day == int(now // _DAY_SECONDS):
                self._add(key.id, Usage(-events, -size))
            raise

    def refresh(self, keys: Iterable[GameKey], now: float) -> None:
        """Write what this process has accepted, read what the others have, and set the metric.

        Raises:
            OSError: the directory can't be read or written.
        """
        self._begin_day(now)
        if self.directory is not None:
            self._write(self.directory)
            self._others = self._read(self.directory)
        for key in keys:
            if key.quota is not None:
                metrics.set_quota_used(key.game, key.id, self._used(key.id).ratio(key))

    def _used(self, key_id: str) -> Usage:
        return self._own.get(key_id, _NOTHING).plus(self._others.get(key_id, _NOTHING))

    def _add(self, key_id: str, usage: Usage) -> None:
        self._own[key_id] = self._own.get(key_id, _NOTHING).plus(usage)
        self._is_written = False

    def _begin_day(self, now: float) -> None:
        day = int(now // _DAY_SECONDS)
        if day != self._day:
            self._day, self._own, self._others, self._is_written = day, {}, {}, True

    def _write(self, directory: Path) -> None:
        if self._is_written:
            return
        unfinished = directory / f"{self._file_name}.new"
        unfinished.write_bytes(msgspec.json.encode(_DayFile(self._day, self._own)))
        unfinished.replace(directory / self._file_name)
        self._is_written = True

    def _read(self, directory: Path) -> dict[str, Usage]:
        found: dict[str, Usage] = {}
        for file in directory.glob("*.json"):
            if file.name == self._file_name:
                continue
            try:
                of_day = msgspec.json.decode(file.read_bytes(), type=_DayFile)
            except (FileNotFoundError, msgspec.DecodeError):
                # Deleted by another process at this moment, or unreadable: it can't be counted.
                continue
            if of_day.day < self._day:
                file.unlink(missing_ok=True)
            elif of_day.day == self._day:
                for key_id, usage in of_day.usage.items():
                    found[key_id] = found.get(key_id, _NOTHING).plus(usage)
        return found


_NOTHING = Usage()
