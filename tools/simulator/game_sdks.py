"""One SDK client per game, and the outcome of every event that they deliver."""

import threading
import time
from collections import Counter, deque
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
    BatchOutcome,
    BufferFullError,
    BufferLimits,
    Client,
    ClientStats,
    Compression,
    Credentials,
    HttpTransport,
    Options,
)
from tools.simulator.ledger import AcknowledgedEvents, HttpLedger, RequestTimes
from tools.simulator.sdk_payloads import SdkPayload
from tools.simulator.text import uuid_text

_MIB = 2**20
EVENTS_PER_BATCH = 2_000
_OPTIONS = Options(
    batch=BatchLimits(events=EVENTS_PER_BATCH, bytes=_MIB * 3 // 4, wait=timedelta(milliseconds=100)),
    buffer=BufferLimits(bytes=4 * _MIB),
    # Between programs on one machine, compression costs more than it saves.
    compression=Compression.NONE,
)
_POLL_INTERVAL = timedelta(seconds=0.5)
_REQUESTS_TIMED = 10_000
# One SDK in `_SKEWED` has a clock that is wrong by `_SKEW_SECONDS`.
_SKEWED, _SKEW_SECONDS = 5, 3 * 3600.0


@dataclass(slots=True)
class DeliveryCounts:
    """The outcomes of the events of one game; `request_seconds` are of its last 10,000 batches."""

    sent: int = 0
    acknowledged: int = 0
    duplicates: int = 0
    refused: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    request_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_REQUESTS_TIMED))


class AcknowledgedIdsFile:
    """The file of acknowledged event ids, one per line; an id that was acknowledged twice is there twice."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def write(self, event_ids: npt.NDArray[np.uint8]) -> None:
        """Append ids: shape (n, 16), random bytes of the UUIDs."""
        if len(event_ids):
            lines = "\n".join(uuid_text(event_ids).to_pylist()) + "\n"
            with self._lock:
                self._file.write(lines.encode())


class DeliveryTracker:
    """Maps the SDK's tickets to events, and counts their outcomes.

    Args:
        acknowledgements: where to write the ids of acknowledged events.
        has_acknowledged: shape (players,); set to True for each player with an acknowledged event.
    """

    def __init__(self, acknowledgements: AcknowledgedIdsFile | None, has_acknowledged: npt.NDArray[np.bool_]) -> None:
        self.counts = DeliveryCounts()
        self._has_acknowledged = has_acknowledged
        self._acknowledgements = acknowledgements
        self._waiting: dict[int, tuple[SdkPayload, int]] = {}
        # Also held while a payload is handed over: its outcome may arrive before its ticket is known.
        self.lock = threading.Lock()

    def hand_over(self, ticket: int, payload: SdkPayload) -> None:
        """Register a payload that the SDK has buffered; the caller holds the lock."""
        self._waiting[ticket] = (payload, len(payload))
        self.counts.sent += len(payload)

    def settle(self, outcome: BatchOutcome) -> None:
        """Count the outcome of a batch; the SDK calls it on its own thread."""
        rejected = np.array([rejection.index for rejection in outcome.rejections], dtype=np.int64)
        start = 0
        with self.lock:
            self.counts.request_seconds.append(outcome.seconds)
            self.counts.rejected.update(rejection.reason for rejection in outcome.rejections)
            for group in outcome.groups:
                is_accepted = np.full(group.count, outcome.refusal is None)
                here = rejected[(rejected >= start) & (rejected < start + group.count)] - start
                is_accepted[here] = False
                self._enter(group.ticket, group.first, is_accepted)
                start += group.count
            if outcome.refusal is not None:
                self.counts.refused += start

    def _enter(self, ticket: int, first: int, is_accepted: npt.NDArray[np.bool_]) -> None:
        payload, open_events = self._waiting.pop(ticket)
        if open_events > len(is_accepted):
            self._waiting[ticket] = (payload, open_events - len(is_accepted))
        here = slice(first, first + len(is_accepted))
        self.counts.acknowledged += int(is_accepted.sum())
        self.counts.duplicates += int(payload.copies[here][is_accepted].sum())
        self._has_acknowledged[payload.players[here][is_accepted]] = True
        if self._acknowledgements is not None:
            self._acknowledgements.write(payload.event_ids[here][is_accepted])


class _Key(msgspec.Struct, frozen=True):
    id: str
    game: str
    secrets: tuple[str, ...]
    role: str = "game"


class _KeyFile(msgspec.Struct, frozen=True):
    keys: tuple[_Key, ...]


def read_credentials(file: Path) -> Mapping[str, Credentials]:
    """Read one key per game from a file in the format of the gateway's keys, by the game's name in the contract.

    Raises:
        SettingsError: the file can't be read or is not a list of keys; the message has no content of the file.
    """
    try:
        keys = msgspec.yaml.decode(file.read_bytes(), type=_KeyFile).keys
    except OSError as error:
        raise SettingsError(f"the keys file {file} can't be read") from error
    except (msgspec.DecodeError, ValueError):
        raise SettingsError(f"the keys file {file} is not a list of keys") from None
    return {key.game: Credentials(key.id, key.secrets[0]) for key in keys if key.secrets and key.role == "game"}


class UnacknowledgedError(TransientError):
    """The gateway refused events, or did not acknowledge them in time."""


class GameSdk:
    """The SDK client of one game, with the outcome of its events."""

    def __init__(self, url: str, credentials: Credentials, number: int, deliveries: DeliveryTracker) -> None:
        skew = _SKEW_SECONDS if number % _SKEWED == _SKEWED - 1 else 0.0
        self.deliveries = deliveries
        self.client = Client(
            HttpTransport(url, _OPTIONS.timeout),
            credentials,
            _OPTIONS,
            deliveries.settle,
            partial(_skewed_clock, skew),
        )

    def send(self, payload: SdkPayload, stop: threading.Event) -> bool:
        """Hand a payload to the SDK, waiting while its buffer is full; False if the run was stopped first."""
        while not stop.is_set():
            try:
                with self.deliveries.lock:
                    self.deliveries.hand_over(self.client.send_delimited(payload.data, len(payload)), payload)
            except BufferFullError:
                self.client.wait_for_space(len(payload.data), _POLL_INTERVAL)
            else:
                return True
        return False


class GameSdks:
    """The SDK clients of all games.

    Args:
        credentials: by the game's title, in the order of the games' indices.
        players: how many there are.
    """

    def __init__(
        self,
        url: str,
        credentials: Mapping[str, Credentials],
        players: int,
        acknowledgements: AcknowledgedIdsFile | None,
    ) -> None:
        self._titles = tuple(credentials)
        self._has_acknowledged = np.zeros(players, dtype=np.bool_)
        self._sdks = [
            GameSdk(url, each, number, DeliveryTracker(acknowledgements, self._has_acknowledged))
            for number, each in enumerate(credentials.values())
        ]
        self._started = time.monotonic()
        self._unsettled = 0

    def send(self, payload: SdkPayload, stop: threading.Event) -> bool:
        """Hand a payload to its game's SDK; False if the run was stopped first."""
        return self._sdks[payload.game].send(payload, stop)

    def finish(self, patience: timedelta) -> None:
        """Wait until all events are settled, `patience` at most, then close the clients."""
        latest = time.monotonic() + patience.total_seconds()
        for sdk in self._sdks:
            sdk.client.flush(timedelta(seconds=max(0.0, latest - time.monotonic())))
        for sdk in self._sdks:
            sdk.client.close(timedelta(0))
            self._unsettled += sdk.client.pending

    def ledger(self, personal: Sequence[str]) -> HttpLedger:
        """Sum up the run; `personal` are samples of personal data that no table may have."""
        counts = [sdk.deliveries.counts for sdk in self._sdks]
        stats = [sdk.client.stats() for sdk in self._sdks]
        return HttpLedger(
            sent=sum(each.sent for each in counts),
            by_game={
                title: AcknowledgedEvents(each.acknowledged, each.duplicates)
                for title, each in zip(self._titles, counts, strict=True)
            },
            rejected=dict(sorted(sum((each.rejected for each in counts), Counter[str]()).items())),
            refused=sum(each.refused for each in counts),
            unsettled=self._unsettled,
            players=int(self._has_acknowledged.sum()),
            requests=_sum(stats, "requests"),
            retries=_sum(stats, "retries"),
            unanswered=_sum(stats, "unanswered"),
            sent_bytes=_sum(stats, "sent_bytes"),
            seconds=round(time.monotonic() - self._started, 3),
            request_times=_times([seconds for each in counts for seconds in each.request_seconds]),
            personal=tuple(personal),
        )


def _skewed_clock(skew_seconds: float) -> float:
    return time.time() + skew_seconds


def _sum(stats: Sequence[ClientStats], name: str) -> int:
    return sum(getattr(each, name) for each in stats)


def _times(seconds: Sequence[float]) -> RequestTimes:
    if not seconds:
        return RequestTimes(p50_ms=0, p99_ms=0, max_ms=0)
    p50, p99, most = (1000 * np.quantile(seconds, [0.5, 0.99, 1])).round(1).tolist()
    return RequestTimes(p50_ms=p50, p99_ms=p99, max_ms=most)
