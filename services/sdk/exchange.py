"""A batch on its way: signed, sent until there is an answer that settles it, and divided if it is too large."""

import gzip
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from .answers import outcome_of, seconds_until_again
from .clock import Clock
from .options import Options, Packing
from .outcome import Figures, Outcome
from .parcel import Parcel, body_of, divided
from .signing import Credentials
from .transport import Reply, Transport, UnreachableError

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
