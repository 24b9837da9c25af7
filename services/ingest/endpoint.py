"""One request to send events, from its headers to its answer."""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from services.ingest import metrics
from services.ingest.admission import Admission, Admitted
from services.ingest.answers import Answer, refused, taken
from services.ingest.encoding import Encoder
from services.ingest.errors import NotTakenError, RefusedError, TooLargeError, TooSlowError, UnreadableBodyError
from services.ingest.keys import GameKey
from services.ingest.personal.guard import Guard
from services.ingest.personal.secrecy import TamperedError
from services.ingest.personal.vault import VaultUnavailableError
from services.ingest.producing import Outbox
from services.ingest.rates import RateLimits
from services.ingest.settings import BodyLimits
from services.ingest.signatures import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, Claim, Doorkeeper
from services.ingest.unpacking import unpack

log = logging.getLogger(__name__)

# What is read of a body that is refused unread, in largest bodies.
_DISCARDED_BODIES = 8


@dataclass(frozen=True, slots=True)
class EventsEndpoint:
    """Takes batches of events; cheap refusals come before dear ones."""

    doorkeeper: Doorkeeper
    rates: RateLimits
    limits: BodyLimits
    admission: Admission
    guard: Guard
    encoder: Encoder
    outbox: Outbox

    async def answer(self, scope: Any, protocol: Any) -> Answer:  # noqa: ANN401 # RSGI's, which has no types
        """Answer a request; whatever is wrong with it is an answer too."""
        started = time.perf_counter()
        try:
            answer = await self._take(scope.headers, protocol)
        except RefusedError as error:
            answer = refused(error)
        metrics.count_request(answer.status, time.perf_counter() - started)
        return answer

    async def _take(self, headers: Any, protocol: Any) -> Answer:  # noqa: ANN401 # see above
        claim = Claim(headers.get(KEY_HEADER, ""), headers.get(TIMESTAMP_HEADER, ""), headers.get(SIGNATURE_HEADER, ""))
        announced = headers.get("content-length", "")
        try:
            key = self.doorkeeper.recognise(claim, time.time())
            form = self.admission.form(headers.get("content-type", ""))
            self._check_announced(announced)
        except RefusedError:
            await self._discard(protocol)
            raise
        body = await self._body(announced, protocol)
        self.doorkeeper.check(key, claim, body)
        content = unpack(body, headers.get("content-encoding", ""), self.limits.unpacked)
        written = form.split(content, self.limits.events)
        self.rates.take(key.game, key.rate, len(written), time.monotonic())
        return await self._send(key, self.admission.admit(form, written, self.admission.game(key.game)))

    def _check_announced(self, length: str) -> None:
        if length and (not length.isdigit() or int(length) > self.limits.size):
            raise TooLargeError(f"a body may have {self.limits.size} bytes")

    async def _discard(self, protocol: Any) -> None:  # noqa: ANN401 # see above
        """Read on for a while: a client that is still writing when the connection closes never sees the answer."""
        left = _DISCARDED_BODIES * self.limits.size
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.patience.total_seconds()):
                async for chunk in protocol:
                    left -= len(chunk)
                    if left < 0:
                        return

    async def _send(self, key: GameKey, admitted: Admitted) -> Answer:
        if admitted.events:
            await self._protect(key.game, admitted.events)
            await self.outbox.send(self.encoder.encode(admitted.events))
        metrics.count_events(key.game, len(admitted.events), admitted.rejections)
        return taken(len(admitted.events), admitted.rejections)

    async def _protect(self, game: str, events: list[Message]) -> None:
        try:
            await self.guard.protect(game, events)
        except VaultUnavailableError as error:
            log.warning("the vault does not answer: %s", error)
            raise NotTakenError("the vault does not answer") from None
        except TamperedError:
            log.exception("the vault is not what was written")
            raise NotTakenError("the vault can't be read") from None

    async def _body(self, announced: str, protocol: Any) -> bytes:  # noqa: ANN401 # see above
        """The whole body, unless it is too large or too slow."""
        try:
            async with asyncio.timeout(self.limits.patience.total_seconds()):
                body = await (protocol() if announced else self._unannounced(protocol))
        except TimeoutError:
            raise TooSlowError("the body did not arrive in time") from None
        if not body:
            raise UnreadableBodyError("the body is empty")
        metrics.count_body(len(body))
        return body

    async def _unannounced(self, protocol: Any) -> bytes:  # noqa: ANN401 # see above
        body = bytearray()
        async for chunk in protocol:
            body += chunk
            if len(body) > self.limits.size:
                raise TooLargeError(f"a body may have {self.limits.size} bytes")
        return bytes(body)
