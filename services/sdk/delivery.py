"""Delivery of a batch: signed, sent until a response settles it, divided if it is too large."""

import gzip
import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from operator import index
from typing import Any

from .batches import BatchOutcome, ClientStats, EventGroup, Refusal, Rejection, body_of, halves
from .options import Compression, Options
from .transport import Credentials, Reply, Transport, UnreachableError

log = logging.getLogger(__name__)

_GZIP_LEVEL = 3
# The header `date` has whole seconds and was in transit for a while: a smaller difference is not an error of the clock.
_CLOCK_TOLERANCE_SECONDS = 5.0
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
# Only these are about the events themselves. Any other 4xx is about the key, the address or a proxy: people repair it,
# and the events wait.
_OF_THE_CONTENT = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNSUPPORTED_MEDIA_TYPE})
_MAX_RETRY_AFTER = 3600.0

DeviceClock = Callable[[], float]

# Waits some seconds; returns True if the client is closing.
Pause = Callable[[float], bool]


class GatewayClock:
    """The gateway's time, in seconds since 1970: that of the device's clock, corrected by the gateway's responses."""

    def __init__(self, device: DeviceClock) -> None:
        self._device = device
        self._offset = 0.0

    def now(self) -> float:
        """Return the gateway's time as far as it is known."""
        return self._device() + self._offset

    def correct(self, date: str | None) -> bool:
        """Compare with the header `date` of a response that has just come. Return True if the clock was corrected."""
        try:
            gateway_time = parsedate_to_datetime(date).timestamp() if date else None
        except (ValueError, OverflowError):
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
            smaller = _smaller(part) if _is_too_large(outcome) else ()
            if len(smaller) > 1:
                waiting += reversed(smaller)
            else:
                self._count(outcome)
                yield outcome

    def _settle(self, batch: Sequence[EventGroup]) -> BatchOutcome:
        attempts, corrected = 0, False
        while True:
            attempts += 1
            started = time.monotonic()
            reply = self._try(batch, attempts)
            seconds = time.monotonic() - started
            # Each response corrects the clock; after a 401 that did so, the batch is sent again: at once, and then with
            # pauses, as the clocks of several gateways may differ.
            was_wrong = reply is not None and self.clock.correct(reply.headers.get("date"))
            is_of_clock = reply is not None and reply.status == HTTPStatus.UNAUTHORIZED and was_wrong
            if is_of_clock and not corrected:
                corrected = True
                continue
            outcome = _outcome_of(tuple(batch), reply)
            if outcome is not None:
                self.stats.problem = ""
                return replace(outcome, attempts=attempts, seconds=seconds)
            is_denied = not is_of_clock and _is_denied(reply)
            if reply is not None:
                self._report(f"{reply.status}: {_reason(reply)}", is_denied=is_denied)
            if self.pause(self._seconds_to_wait(reply, attempts, is_denied=is_denied)):
                raise InterruptedDeliveryError

    def _try(self, batch: Sequence[EventGroup], attempt: int) -> Reply | None:
        """Send a batch once; None if there is no response, whatever the transport raises."""
        try:
            return self._post(batch[0].event_format.content_type, self._compressed(body_of(batch)), attempt)
        except UnreachableError as error:
            self._report(f"no response: {error}")
        except Exception as error:
            # The type alone: an error's text may have a header's value in it.
            self._report(f"the request can't be sent: {type(error).__name__}", is_denied=True)
        self.stats.unanswered += 1
        return None

    def _post(self, content_type: str, body: bytes, attempt: int) -> Reply:
        headers = {"content-type": content_type, **self.credentials.headers(body, self.clock.now())}
        if self.options.compression is not Compression.NONE:
            headers["content-encoding"] = self.options.compression.value
        self.stats.requests += 1
        self.stats.retries += attempt > 1
        self.stats.sent_bytes += len(body)
        reply = self.transport.post(body, headers)
        self.stats.unanswered += reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        self.stats.denied += _is_denied(reply)
        return reply

    def _report(self, problem: str, *, is_denied: bool = False) -> None:
        """Tell the game why events wait; in the log only what does not end by itself, and once."""
        if is_denied and problem != self.stats.problem:
            log.warning("events wait, and are sent again: %s", problem, extra={"event": "events_wait"})
        self.stats.problem = problem

    def _compressed(self, body: bytes) -> bytes:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0) if self.options.compression is Compression.GZIP else body

    def _seconds_to_wait(self, reply: Reply | None, attempts: int, *, is_denied: bool) -> float:
        jittered = random.uniform(0, self.options.backoff.limit_seconds(attempts, is_denied=is_denied))
        # Added, so that clients with the same `retry-after` do not all come at once.
        return retry_after_seconds(reply) + jittered

    def _count(self, outcome: BatchOutcome) -> None:
        self.stats.accepted += outcome.accepted
        self.stats.rejected += len(outcome.rejections)
        if outcome.refusal is not None:
            self.stats.refused += sum(group.count for group in outcome.groups)


def _is_too_large(outcome: BatchOutcome) -> bool:
    return outcome.refusal is not None and outcome.refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _smaller(batch: Sequence[EventGroup]) -> tuple[Sequence[EventGroup], ...]:
    try:
        return halves(batch)
    except IndexError:
        # Bytes of `send_delimited` that are not messages.
        return ()


def _is_client_error(reply: Reply) -> bool:
    return HTTPStatus.BAD_REQUEST <= reply.status < HTTPStatus.INTERNAL_SERVER_ERROR and reply.status not in _RETRIED


def _is_final(reply: Reply) -> bool:
    """True if the gateway itself refuses the events, and would refuse them again."""
    if reply.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return True
    return reply.status in _OF_THE_CONTENT and "error" in _json_object(reply.body)


def _is_denied(reply: Reply | None) -> bool:
    """True if the batch can't pass until a person repairs the key, the address or a proxy."""
    return reply is not None and _is_client_error(reply) and not _is_final(reply)


def _reason(reply: Reply) -> str:
    return str(_json_object(reply.body).get("error", "the gateway gives no reason"))


def _outcome_of(groups: tuple[EventGroup, ...], reply: Reply | None) -> BatchOutcome | None:
    """The outcome of a batch by the response to it; None if the batch must be sent again."""
    if reply is None:
        return None
    if reply.status == HTTPStatus.OK:
        return _accepted(groups, _json_object(reply.body))
    if not _is_final(reply):
        return None
    return BatchOutcome(groups=groups, accepted=0, refusal=Refusal(reply.status, _reason(reply)))


def _accepted(groups: tuple[EventGroup, ...], content: dict[str, Any]) -> BatchOutcome | None:
    try:
        rejections = tuple(
            Rejection(index(each["index"]), str(each["reason"]), str(each.get("field", "")))
            for each in content["rejected"]
        )
        accepted = index(content["accepted"])
    except (KeyError, TypeError, AttributeError):
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


def retry_after_seconds(reply: Reply | None) -> float:
    """Return the header `retry-after` in seconds; a date, its other form, is left to the back-off."""
    text = reply.headers.get("retry-after", "") if reply is not None else ""
    return min(float(text), _MAX_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0
