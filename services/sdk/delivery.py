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

from .batches import BatchOutcome, ClientStats, EventGroup, Refusal, Rejection, body_of, halves
from .options import Compression, Options
from .transport import Credentials, Reply, Transport, UnreachableError

_GZIP_LEVEL = 3
# The header `date` has whole seconds and was in transit for a while: a smaller difference is no error of the clock.
_CLOCK_TOLERANCE_SECONDS = 5.0
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_MAX_RETRY_AFTER = 3600.0

DeviceClock = Callable[[], float]

# Waits so many seconds; gives whether the client is closing.
Pause = Callable[[float], bool]


class GatewayClock:
    """The gateway's time, in seconds since 1970: that of the device's clock, corrected by the gateway's responses."""

    def __init__(self, device: DeviceClock) -> None:
        self._device = device
        self._offset = 0.0

    def now(self) -> float:
        """The gateway's time as far as it is known."""
        return self._device() + self._offset

    def correct(self, date: str | None) -> bool:
        """Compare with the header `date` of a response that has just come; gives whether the clock was corrected."""
        try:
            gateway_time = parsedate_to_datetime(date).timestamp() if date else None
        except ValueError:
            gateway_time = None
        if gateway_time is None or abs(gateway_time - self.now()) <= _CLOCK_TOLERANCE_SECONDS:
            return False
        self._offset = gateway_time - self._device()
        return True


class InterruptedDeliveryError(Exception):
    """The client is closing; the batch is not settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Delivers batches to the gateway, one at a time."""

    transport: Transport
    credentials: Credentials
    options: Options
    clock: GatewayClock
    pause: Pause
    stats: ClientStats = field(default_factory=ClientStats)

    def deliver(self, batch: Sequence[EventGroup]) -> Iterator[BatchOutcome]:
        """Send a batch until it is settled: one outcome, or several if the batch was too large for one request.

        Raises:
            InterruptedDeliveryError: the client is closing.
        """
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            outcome = self._settle(part)
            smaller = halves(part) if _is_too_large(outcome) else ()
            if len(smaller) > 1:
                waiting += reversed(smaller)
            else:
                self._count(outcome)
                yield outcome

    def _settle(self, batch: Sequence[EventGroup]) -> BatchOutcome:
        body, attempts, corrected = self._compressed(body_of(batch)), 0, False
        while True:
            attempts += 1
            started = time.monotonic()
            reply = self._post(batch[0].event_format.content_type, body, attempts)
            seconds = time.monotonic() - started
            # Each response corrects the clock; after a 401 that did so, the batch is sent again: at once, and then with
            # pauses, as the clocks of several gateways may differ.
            was_wrong = reply is not None and self.clock.correct(reply.headers.get("date"))
            is_of_clock = reply is not None and reply.status == HTTPStatus.UNAUTHORIZED and was_wrong
            if is_of_clock and not corrected:
                corrected = True
                continue
            outcome = None if is_of_clock else _outcome_of(tuple(batch), reply)
            if outcome is not None:
                return replace(outcome, attempts=attempts, seconds=seconds)
            if self.pause(self._seconds_to_wait(reply, attempts)):
                raise InterruptedDeliveryError

    def _post(self, content_type: str, body: bytes, attempt: int) -> Reply | None:
        headers = {"content-type": content_type, **self.credentials.headers(body, self.clock.now())}
        if self.options.compression is not Compression.NONE:
            headers["content-encoding"] = self.options.compression.value
        self.stats.requests += 1
        self.stats.retries += attempt > 1
        self.stats.sent_bytes += len(body)
        try:
            reply = self.transport.post(body, headers)
        except UnreachableError:
            self.stats.unanswered += 1
            return None
        self.stats.unanswered += reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return reply

    def _compressed(self, body: bytes) -> bytes:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0) if self.options.compression is Compression.GZIP else body

    def _seconds_to_wait(self, reply: Reply | None, attempts: int) -> float:
        jittered = random.uniform(0, self.options.backoff.limit_seconds(attempts))
        # Added, so that clients with the same `retry-after` do not all come at once.
        return _retry_after_seconds(reply) + jittered

    def _count(self, outcome: BatchOutcome) -> None:
        self.stats.accepted += outcome.accepted
        self.stats.rejected += len(outcome.rejections)
        if outcome.refusal is not None:
            self.stats.refused += sum(group.count for group in outcome.groups)


def _is_too_large(outcome: BatchOutcome) -> bool:
    return outcome.refusal is not None and outcome.refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _outcome_of(groups: tuple[EventGroup, ...], reply: Reply | None) -> BatchOutcome | None:
    """The outcome of a batch by the response to it; None if the batch must be sent again."""
    if reply is None or reply.status in _RETRIED:
        return None
    content = _json_object(reply.body)
    if reply.status == HTTPStatus.OK:
        return _accepted(groups, content)
    if not HTTPStatus.BAD_REQUEST <= reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    text = str(content.get("error", "the gateway gives no reason"))
    return BatchOutcome(groups=groups, accepted=0, refusal=Refusal(reply.status, text))


def _accepted(groups: tuple[EventGroup, ...], content: dict[str, Any]) -> BatchOutcome | None:
    try:
        rejections = tuple(
            Rejection(each["index"], each["reason"], each.get("field", "")) for each in content["rejected"]
        )
        accepted = int(content["accepted"])
    except (KeyError, TypeError, ValueError, AttributeError):
        accepted, rejections = -1, ()
    if accepted + len(rejections) != sum(group.count for group in groups):
        # The login page of a public network is a 200 too: the gateway's response counts all events.
        return None
    return BatchOutcome(groups=groups, accepted=accepted, rejections=rejections)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _retry_after_seconds(reply: Reply | None) -> float:
    """The header `retry-after` in seconds; a date, its other form, is left to the back-off."""
    text = reply.headers.get("retry-after", "") if reply is not None else ""
    return min(float(text), _MAX_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0
