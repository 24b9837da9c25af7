"""What becomes of events that were taken: accepted, rejected one by one, or refused as a batch."""

from collections.abc import Iterator
from dataclasses import dataclass

from .parcel import Parcel


@dataclass(frozen=True, slots=True)
class Rejection:
    """An event that the gateway will not take as it is: its place in the outcome, and why."""

    index: int
    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a whole batch was not looked at; sent again as it is, it would be refused again."""

    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a batch, or of a part of one that was too large: none of its events is sent again.

    Args:
        accepted: events that Kafka has; all but the rejected ones, or none after a refusal.
        attempts: requests that it took.
        seconds: how long the last of them took.
    """

    parcels: tuple[Parcel, ...]
    accepted: int
    rejections: tuple[Rejection, ...] = ()
    refusal: Refusal | None = None
    attempts: int = 1
    seconds: float = 0.0

    def events(self) -> tuple[bytes, ...]:
        """Each event as it was written; a rejection's index is a place in it."""
        return tuple(event for parcel in self.parcels for event in parcel.events())

    def accepted_events(self) -> Iterator[bytes]:
        """The events that Kafka has."""
        if self.refusal is not None:
            return
        rejected = {rejection.index for rejection in self.rejections}
        for index, event in enumerate(self.events()):
            if index not in rejected:
                yield event


@dataclass(slots=True, kw_only=True)
class Figures:
    """What a client has done since it was made, in events unless it says otherwise.

    Args:
        taken: events that were handed over and taken; those that a file had from before are not among them.
        accepted: acknowledged by the gateway; `rejected` and `refused` ones were told to the caller.
        dropped: given up for newer ones when the buffer was full; `turned_away` were refused for want of room.
        requests: in requests, as are `retries`, which were sent for a batch for the second time or later, and
            `unanswered` ones, of which it is not known whether the gateway has taken their events.
        sent_bytes: in bytes of bodies as they travelled.
    """

    taken: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    dropped: int = 0
    turned_away: int = 0
    requests: int = 0
    retries: int = 0
    unanswered: int = 0
    sent_bytes: int = 0
