"""One SDK client for each game, as many connections, and the accounts of all of them."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

import numpy as np

from gamelake.errors import TransientError
from services.sdk import (
    BatchLimits,
    BufferFullError,
    BufferLimits,
    Client,
    Credentials,
    Figures,
    HttpTransport,
    Options,
    Packing,
)
from tools.simulator.bookkeeping import Acknowledgements, GameBooks
from tools.simulator.http_ledger import Acknowledged, HttpLedger, RequestTimes
from tools.simulator.packing import Packet

_MIB = 2**20
EVENTS_PER_BATCH = 2_000
_OPTIONS = Options(
    batch=BatchLimits(events=EVENTS_PER_BATCH, bytes=_MIB * 3 // 4, wait=timedelta(milliseconds=100)),
    buffer=BufferLimits(bytes=4 * _MIB),
    # Between programs of one machine packing costs more than it saves.
    packing=Packing.NONE,
)
_SECONDS_BETWEEN_LOOKS = timedelta(seconds=0.5)
# One device in so many has a wrong clock.
_SKEWED, _SKEW_SECONDS = 5, 3 * 3600.0


class UnacknowledgedError(TransientError):
    """The gateway has refused events, or did not answer for them in time."""


class GameSdk:
    """The SDK of one game, with its books."""

    def __init__(self, url: str, credentials: Credentials, number: int, books: GameBooks) -> None:
        skew = _SKEW_SECONDS if number % _SKEWED == _SKEWED - 1 else 0.0
        self.books = books
        self.client = Client(
            HttpTransport(url, _OPTIONS.patience), credentials, _OPTIONS, books.settle, partial(_skewed_clock, skew)
        )

    def send(self, packet: Packet, stop: threading.Event) -> bool:
        """Hand a packet over, waiting while there is no room; says whether it was before the run was stopped."""
        while not stop.is_set():
            try:
                with self.books.lock:
                    self.books.hand_over(self.client.send_packed(packet.payload, len(packet)), packet)
            except BufferFullError:
                self.client.await_room(len(packet.payload), _SECONDS_BETWEEN_LOOKS)
            else:
                return True
        return False


class GameSdks:
    """All of them.

    Args:
        credentials: one for each title, in the order of the titles' numbers.
    """

    def __init__(
        self, url: str, credentials: Mapping[str, Credentials], acknowledgements: Acknowledgements | None
    ) -> None:
        self._titles = tuple(credentials)
        self._sdks = [
            GameSdk(url, each, number, GameBooks(acknowledgements)) for number, each in enumerate(credentials.values())
        ]
        self._started = time.monotonic()
        self._unsettled = 0

    def send(self, packet: Packet, stop: threading.Event) -> bool:
        """Hand a packet over to its game's SDK; says whether that was before the run was stopped."""
        return self._sdks[packet.game].send(packet, stop)

    def finish(self, patience: timedelta) -> None:
        """Wait until all that was handed over is settled, or the patience is over."""
        latest = time.monotonic() + patience.total_seconds()
        for sdk in self._sdks:
            sdk.client.flush(timedelta(seconds=max(0.0, latest - time.monotonic())))
        for sdk in self._sdks:
            sdk.client.close(timedelta(0))
            self._unsettled += sdk.client.waiting

    def ledger(self, personal: Sequence[str]) -> HttpLedger:
        """Close the accounts."""
        tallies = [sdk.books.tally for sdk in self._sdks]
        figures = [sdk.client.figures() for sdk in self._sdks]
        players = [some for tally in tallies for some in tally.players]
        return HttpLedger(
            sent=sum(tally.sent for tally in tallies),
            by_game={
                title: Acknowledged(tally.acknowledged, tally.duplicates)
                for title, tally in zip(self._titles, tallies, strict=True)
            },
            rejected=dict(sorted(sum((tally.rejected for tally in tallies), Counter[str]()).items())),
            refused=sum(tally.refused for tally in tallies),
            unsettled=self._unsettled,
            players=len(np.unique(np.concatenate(players))) if players else 0,
            requests=_sum(figures, "requests"),
            retries=_sum(figures, "retries"),
            unanswered=_sum(figures, "unanswered"),
            sent_bytes=_sum(figures, "sent_bytes"),
            seconds=round(time.monotonic() - self._started, 3),
            request_times=_times([seconds for tally in tallies for seconds in tally.request_seconds]),
            personal=tuple(personal),
        )


def _skewed_clock(skew_seconds: float) -> float:
    return time.time() + skew_seconds


def _sum(figures: Sequence[Figures], name: str) -> int:
    return sum(getattr(each, name) for each in figures)


def _times(seconds: Sequence[float]) -> RequestTimes:
    if not seconds:
        return RequestTimes(p50_ms=0, p99_ms=0, max_ms=0)
    p50, p99, most = (1000 * np.quantile(seconds, [0.5, 0.99, 1])).round(1).tolist()
    return RequestTimes(p50_ms=p50, p99_ms=p99, max_ms=most)
