"""Locks out clients that send many wrong signatures of a key, so that a flood of them costs headers and no bodies.

A key's id is in every copy of its game, so a key is never locked, only its use from one network. Connections by which
a right signature came stay open to all: behind a shared address, games go on while another client there is locked out.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import TypeVar

from gamelake.model.logs import event_logger
from services.gateway import metrics
from services.gateway.authentication import GameKey
from services.gateway.errors import AuthenticationError, LockedOutError

log = event_logger(__name__)

# Some 200 bytes each. A client with more networks than this is not locked out, and uses no more memory.
_REMEMBERED = 10_000
# A client that has one address of IPv6 usually has all that share its first 64 bits.
_HOST_BITS = 64

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def network_of(client: str) -> str:
    """The network of a client, which is `address:port`: an address of IPv4, the first 64 bits of one of IPv6."""
    text = client.rpartition(":")[0].strip("[]")
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or int(address) >> _HOST_BITS)
    return str(address)


@dataclass(slots=True)
class _Window:
    ends: float
    wrong: int = 0


@dataclass(slots=True)
class ClientLockout:
    """Counts wrong signatures by key and network, in one process; times are seconds of one monotonic clock.

    Args:
        allowed: wrong signatures of one key from one network in a window; 0 locks nothing out.
        window: from the first wrong signature to the end of its count, and of the lock-out.
    """

    allowed: int
    window: timedelta
    _windows: OrderedDict[tuple[str, str], _Window] = field(default_factory=OrderedDict)
    _proven: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _unreported: int = 0
    _next_report: float = 0.0

    def check(self, key: GameKey, client: str, now: float) -> None:
        """Check that a client, `address:port`, may have another signature verified.

        Raises:
            LockedOutError: its network has sent too many wrong ones of this key, and this connection no right one.
        """
        if not self._windows or client in self._proven:
            return
        window = self._windows.get((key.id, network_of(client)))
        if window is not None and window.wrong >= self.allowed and now < window.ends:
            metrics.count_locked_out(key.game)
            raise LockedOutError(
                "too many wrong signatures of this key came from your network", timedelta(seconds=window.ends - now)
            )

    @contextmanager
    def counting(self, key: GameKey, client: str, now: float) -> Iterator[None]:
        """Count the result of a verification, which is done inside the block."""
        try:
            yield
        except AuthenticationError:
            self._count_wrong(key, client, now)
            raise
        if client not in self._proven:
            _remember(self._proven, client, None)

    def _count_wrong(self, key: GameKey, client: str, now: float) -> None:
        self._proven.pop(client, None)
        if not self.allowed:
            return
        counted = (key.id, network_of(client))
        window = self._windows.get(counted)
        if window is None or now >= window.ends:
            self._windows.pop(counted, None)
            window = _Window(now + self.window.total_seconds())
            _remember(self._windows, counted, window)
        window.wrong += 1
        if window.wrong == self.allowed:
            self._report(key, now)

    def _report(self, key: GameKey, now: float) -> None:
        """One line in each window at most, without the address, which is personal."""
        self._unreported += 1
        if now < self._next_report:
            return
        log.warning("clients_locked_out", key_id=key.id, networks=self._unreported, seconds=self.window.total_seconds())
        self._unreported, self._next_report = 0, now + self.window.total_seconds()


def _remember(into: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Add an entry in place of the oldest, if there are too many."""
    into[key] = value
    if len(into) > _REMEMBERED:
        into.popitem(last=False)
