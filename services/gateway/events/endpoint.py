"""`POST /v1/events`: one request, from its headers to its response."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from services.gateway import metrics
from services.gateway.authentication import Authenticator, GameKey, SignatureHeaders
from services.gateway.errors import BodyTooLargeError, OverMemoryError, RateLimitedError, RefusedError
from services.gateway.events.request_preparation import RequestPreparer
from services.gateway.events.validation import BodyFormat, EventBatch, EventValidator
from services.gateway.kafka_producer import EventProducer, size_of
from services.gateway.limits.memory_budget import REQUEST_BYTES, MemoryBudget, Reservation
from services.gateway.limits.quotas import Quotas
from services.gateway.limits.rates import RateLimits
from services.gateway.limits.turns import Turns
from services.gateway.request_body import BodyReader, decompress
from services.gateway.responses import Response, batch_response, refusal_response
from services.gateway.settings import BodyLimits
from services.gateway.traces import RequestTracer

# Reading a body up to this size takes a millisecond.
_SMALL_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class _Head:
    """The content of a request's headers; `expected` is the greatest size that its body may have."""

    key: GameKey
    signature: SignatureHeaders
    body_format: BodyFormat
    encoding: str
    content_length: str
    expected: int


@dataclass(frozen=True, slots=True)
class EventsEndpoint:
    """Accepts batches of events. Checks run in the order of their cost."""

    authenticator: Authenticator
    rates: RateLimits
    quotas: Quotas
    limits: BodyLimits
    body_reader: BodyReader
    memory: MemoryBudget
    turns: Turns
    validator: EventValidator
    preparer: RequestPreparer
    producer: EventProducer
    tracer: RequestTracer

    async def respond(self, scope: Any, protocol: Any) -> Response:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request; an invalid one gets a response too."""
        started, arrived = time.perf_counter(), time.time_ns()
        try:
            response = await self._process(scope, protocol, arrived)
        except RefusedError as error:
            response = refusal_response(error)
        except Exception:
            # The server answers it with 500.
            metrics.count_request(HTTPStatus.INTERNAL_SERVER_ERROR, time.perf_counter() - started)
            raise
        metrics.count_request(response.status, time.perf_counter() - started)
        return response

    async def _process(self, scope: Any, protocol: Any, arrived: int) -> Response:  # noqa: ANN401 # see above
        head = await self._check_head(scope, protocol)
        game = head.key.game
        try:
            with await self._reserve(head, protocol) as memory:
                # `_receive` returns before the wait for Kafka, so that the body's memory is free meanwhile.
                return await self._send(arrived, memory, head.key, *await self._receive(head, protocol, memory))
        except OverMemoryError:
            metrics.count_over_memory(game)
            raise

    async def _check_head(self, scope: Any, protocol: Any) -> _Head:  # noqa: ANN401 # see above
        """Check all of a request that can be checked without its body."""
        headers = scope.headers
        signature = SignatureHeaders.of(headers)
        content_length = headers.get("content-length", "")
        try:
            key = self.authenticator.find_game_key(signature, time.time())
            body_format = self.validator.body_format(headers.get("content-type", ""))
            expected = self.body_reader.expected_size(content_length)
        except RefusedError:
            await self.body_reader.drain(protocol)
            raise
        encoding = headers.get("content-encoding", "")
        return _Head(key, signature, body_format, encoding, content_length, expected)

    async def _reserve(self, head: _Head, protocol: Any) -> Reservation:  # noqa: ANN401 # see above
        # Without a content length the sender decides how much of the largest size the body uses.
        try:
            return self.memory.reserve(head.key.game, REQUEST_BYTES + head.expected)
        except OverMemoryError:
            await self.body_reader.drain(protocol)
            raise

    async def _receive(self, head: _Head, protocol: Any, memory: Reservation) -> tuple[int, EventBatch]:  # noqa: ANN401 # see above
        """Return the size of a body, and its events."""
        body = await self.body_reader.read(head.content_length, protocol)
        metrics.count_body(len(body))
        memory.resize(REQUEST_BYTES + len(body))
        key = head.key
        self.authenticator.verify(key, head.signature, body)
        try:
            content = decompress(body, head.encoding, _SMALL_BYTES)
        except BodyTooLargeError:
            async with self.turns.turn(key.game):
                return len(body), self._batch(head, self._decompress(body, head.encoding, memory), memory)
        return len(body), self._batch(head, content, memory)

    def _decompress(self, body: bytes, encoding: str, memory: Reservation) -> bytes:
        """Decompress a body, up to the size for which there is memory."""
        room = max(0, memory.largest - REQUEST_BYTES - len(body))
        try:
            return decompress(body, encoding, min(self.limits.decompressed, room))
        except BodyTooLargeError:
            if room < self.limits.decompressed:
                raise OverMemoryError from None
            raise

    def _batch(self, head: _Head, content: bytes, memory: Reservation) -> EventBatch:
        memory.resize(REQUEST_BYTES + head.body_format.memory(content, self.limits.events))
        raw_events = head.body_format.split(content, self.limits.events)
        game = self.validator.game(head.key.game)
        return EventBatch(game, head.body_format, raw_events, len(content), datetime.now(UTC))

    async def _send(self, arrived: int, memory: Reservation, key: GameKey, size: int, batch: EventBatch) -> Response:
        game, events = key.game, len(batch.raw_events)
        try:
            self.rates.take(key, events, time.monotonic())
            with self.quotas.reserved(key, events, size, time.time()):
                prepared = await self.preparer.prepare(batch)
                accepted, rejections = len(prepared.records), prepared.rejections
                traced, sent = self.tracer.traced_events(prepared.records), time.time_ns()
                memory.resize(REQUEST_BYTES + size_of(prepared.records))
                confirmed = self.producer.send(prepared.records)
                # While Kafka confirms, the client's queue has the records: no second copy stays in memory.
                del batch, prepared
                await confirmed
            self.tracer.acknowledged(traced, game, arrived, sent)
        except RateLimitedError:
            metrics.count_throttled(game, events)
            raise
        metrics.count_events(game, accepted, rejections)
        return batch_response(accepted, rejections)
