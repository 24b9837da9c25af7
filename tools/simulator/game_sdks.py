"""One SDK client for each game, as many connections, and the accounts of all of them."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from gamelake.model.errors import SettingsError, TransientError
from services.sdk import (
    BatchLimits,
    BufferFullError,
    BufferLimits,
    Client,
    Credentials,
    Figures,
    HttpTransport,
    Options,
    Outcome,
    Packing,
)
from tools.simulator.ledger import Acknowledged, HttpLedger, RequestTimes
from tools.simulator.sdk_payloads import Packet
from tools.simulator.text import uuid_text


@dataclass(slots=True)
class Tally:
    """The accounts of one game."""

    sent: int = 0
    acknowledged: int = 0
    duplicates: int = 0
    refused: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    request_seconds: list[float] = field(default_factory=list)
    players: list[npt.NDArray[np.int64]] = field(default_factory=list)


class Acknowledgements:
    """The file with the id of every event that was acknowledged, one a line, as often as it was."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def note(self, event_ids: npt.NDArray[np.uint8]) -> None:
        """Write ids of 16 bytes each as the events have them."""
        if len(event_ids):
            lines = "\n".join(uuid_text(event_ids).to_pylist()) + "\n"
            with self._lock:
                self._file.write(lines.encode())


class GameBooks:
    """Knows which events a ticket stands for, and what became of them."""

    def __init__(self, acknowledgements: Acknowledgements | None) -> None:
        self.tally = Tally()
        self._acknowledgements = acknowledgements
        self._waiting: dict[int, tuple[Packet, int]] = {}
        # Held while a packet is handed over too: its outcome may be there before its ticket is.
        self.lock = threading.Lock()

    def hand_over(self, ticket: int, packet: Packet) -> None:
        """Note a packet that the SDK has taken; the caller holds the lock."""
        self._waiting[ticket] = (packet, len(packet))
        self.tally.sent += len(packet)

    def settle(self, outcome: Outcome) -> None:
        """Note what became of a batch; the SDK calls it on a thread of its own."""
        rejected = np.array([rejection.index for rejection in outcome.rejections], dtype=np.int64)
        start = 0
        with self.lock:
            self.tally.request_seconds.append(outcome.seconds)
            self.tally.rejected.update(rejection.reason for rejection in outcome.rejections)
            for parcel in outcome.parcels:
                is_accepted = np.full(parcel.count, outcome.refusal is None)
                here = rejected[(rejected >= start) & (rejected < start + parcel.count)] - start
                is_accepted[here] = False
                self._enter(parcel.ticket, parcel.first, is_accepted)
                start += parcel.count
            if outcome.refusal is not None:
                self.tally.refused += start

    def _enter(self, ticket: int, first: int, is_accepted: npt.NDArray[np.bool_]) -> None:
        packet, open_events = self._waiting.pop(ticket)
        if open_events > len(is_accepted):
            self._waiting[ticket] = (packet, open_events - len(is_accepted))
        here = slice(first, first + len(is_accepted))
        self.tally.acknowledged += int(is_accepted.sum())
        self.tally.duplicates += int(packet.copies[here][is_accepted].sum())
        self.tally.players.append(np.unique(packet.players[here][is_accepted]))
        if self._acknowledgements is not None:
            self._acknowledgements.note(packet.event_ids[here][is_accepted])


class _Key(msgspec.Struct, frozen=True):
    id: str
    game: str
    secrets: tuple[str, ...]


class _KeyFile(msgspec.Struct, frozen=True):
    keys: tuple[_Key, ...]


def read_credentials(file: Path) -> Mapping[str, Credentials]:
    """Give one key for each game, by the game's name in the contract.

    Raises:
        SettingsError: the file can't be read or is not a list of keys; it says nothing of what the file holds.
    """
    try:
        keys = msgspec.yaml.decode(file.read_bytes(), type=_KeyFile).keys
    except OSError as error:
        raise SettingsError(f"the keys file {file} can't be read") from error
    except (msgspec.DecodeError, ValueError):
        raise SettingsError(f"the keys file {file} is not a list of keys") from None
    return {key.game: Credentials(key.id, key.secrets[0]) for key in keys if key.secrets}


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
