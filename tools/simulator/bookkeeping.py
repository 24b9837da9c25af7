"""Adds up what the gateway answers, game by game, while batches are on their way."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from services.sdk import Outcome
from tools.simulator.packing import Packet
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
