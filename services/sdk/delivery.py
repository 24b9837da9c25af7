"""Delivery of a batch: signed, sent until a response settles it, divided if it is too large."""

import gzip
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from .batches import Figures, Outcome, Parcel, Refusal, Rejection, body_of, divided
from .options import Options, Packing
from .transport import Credentials, Reply, Transport, UnreachableError

# An answer says whole seconds and was on its way for a while: what differs by less is no error of the clock.
_NOISE_SECONDS = 5.0

DeviceClock = Callable[[], float]


class Clock:
    """The device's clock, in seconds since 1970, put right by what answers say."""

    def __init__(self, device: DeviceClock) -> None:
        self._device = device
        self._ahead = 0.0

    def now(self) -> float:
        """The gateway's time as far as it is known."""
        return self._device() + self._ahead

    def learn(self, date: str | None) -> bool:
        """Compare with the `Date` of an answer that has just come; says whether the clock was put right."""
        try:
            told = parsedate_to_datetime(date).timestamp() if date else None
        except ValueError:
            told = None
        if told is None or abs(told - self.now()) <= _NOISE_SECONDS:
            return False
        self._ahead = told - self._device()
        return True


_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_LONGEST_RETRY_AFTER = 3600.0


def outcome_of(parcels: tuple[Parcel, ...], reply: Reply | None) -> Outcome | None:
    """What an answer makes of a batch; None if the batch must be sent again."""
    if reply is None or reply.status in _AGAIN:
        return None
    told = _object_in(reply.body)
    if reply.status == HTTPStatus.OK:
        return _looked_at(parcels, told)
    if not HTTPStatus.BAD_REQUEST <= reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    text = str(told.get("error", "the gateway gives no reason"))
    return Outcome(parcels=parcels, accepted=0, refusal=Refusal(reply.status, text))


def seconds_until_again(reply: Reply | None) -> float:
    """What `Retry-After` says in seconds; its other form, a date, is left to the back-off."""
    text = reply.headers.get("retry-after", "") if reply is not None else ""
    return min(float(text), _LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0


def _looked_at(parcels: tuple[Parcel, ...], told: dict[str, Any]) -> Outcome | None:
    try:
        rejections = tuple(Rejection(each["index"], each["reason"], each.get("field", "")) for each in told["rejected"])
        accepted = int(told["accepted"])
    except (KeyError, TypeError, ValueError, AttributeError):
        accepted, rejections = -1, ()
    if accepted + len(rejections) != sum(parcel.count for parcel in parcels):
        # The page of a hotel's network is a 200 too: what does not name the batch's events has not taken them.
        return None
    return Outcome(parcels=parcels, accepted=accepted, rejections=rejections)


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


_GZIP_LEVEL = 3

# Waits so many seconds; says whether the client was told to end meanwhile.
Pause = Callable[[float], bool]


class InterruptedDeliveryError(Exception):
    """The client ends; the batch is not settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Brings batches to the gateway, one at a time."""

    transport: Transport
    credentials: Credentials
    options: Options
    clock: Clock
    pause: Pause
    figures: Figures = field(default_factory=Figures)

    def deliver(self, parcels: Sequence[Parcel]) -> Iterator[Outcome]:
        """Send parcels of one form until they are settled: one outcome, or several if they were too much for one body.

        Raises:
            InterruptedDeliveryError: the client was told to end before.
        """
        waiting = [parcels]
        while waiting:
            part = waiting.pop()
            outcome = self._settle(part)
            smaller = divided(part) if _is_too_large(outcome) else ()
            if len(smaller) > 1:
                waiting += reversed(smaller)
            else:
                self._count(outcome)
                yield outcome

    def _settle(self, parcels: Sequence[Parcel]) -> Outcome:
        body, attempts, corrected = self._packed(body_of(parcels)), 0, False
        while True:
            attempts += 1
            started = time.monotonic()
            reply = self._ask(parcels[0].form.content_type, body, attempts)
            seconds = time.monotonic() - started
            # The clock is put right by every answer; one that refuses for it is worth a second try.
            learned = reply is not None and self.clock.learn(reply.headers.get("date"))
            if reply is not None and reply.status == HTTPStatus.UNAUTHORIZED and learned and not corrected:
                corrected = True
                continue
            outcome = outcome_of(tuple(parcels), reply)
            if outcome is not None:
                return replace(outcome, attempts=attempts, seconds=seconds)
            if self.pause(self._seconds_to_wait(reply, attempts)):
                raise InterruptedDeliveryError

    def _ask(self, content_type: str, body: bytes, attempt: int) -> Reply | None:
        headers = {"content-type": content_type, **self.credentials.headers(body, self.clock.now())}
        if self.options.packing is not Packing.NONE:
            headers["content-encoding"] = self.options.packing.value
        self.figures.requests += 1
        self.figures.retries += attempt > 1
        self.figures.sent_bytes += len(body)
        try:
            reply = self.transport.post(body, headers)
        except UnreachableError:
            self.figures.unanswered += 1
            return None
        self.figures.unanswered += reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return reply

    def _packed(self, body: bytes) -> bytes:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0) if self.options.packing is Packing.GZIP else body

    def _seconds_to_wait(self, reply: Reply | None, attempts: int) -> float:
        jittered = random.uniform(0, self.options.backoff.limit_seconds(attempts))
        # Never before the gateway wants it, and not all clients that were told the same at once.
        return seconds_until_again(reply) + jittered

    def _count(self, outcome: Outcome) -> None:
        self.figures.accepted += outcome.accepted
        self.figures.rejected += len(outcome.rejections)
        if outcome.refusal is not None:
            self.figures.refused += sum(parcel.count for parcel in outcome.parcels)


def _is_too_large(outcome: Outcome) -> bool:
    return outcome.refusal is not None and outcome.refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
