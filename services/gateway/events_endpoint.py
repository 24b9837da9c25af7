"""`POST /v1/events`: one request, from its headers to its response."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.gateway import metrics
from services.gateway.authentication import Authenticator, GameKey, SignatureHeaders
from services.gateway.errors import RateLimitedError, RefusedError
from services.gateway.kafka_producer import EventProducer
from services.gateway.limits import EventCapacity, RateLimits
from services.gateway.lockout import ClientLockout
from services.gateway.quotas import Quotas
from services.gateway.request_body import BodyReader, decompress
from services.gateway.request_preparation import RequestPreparer
from services.gateway.responses import Response, batch_response, refusal_response
from services.gateway.settings import BodyLimits
from services.gateway.traces import RequestTracer
from services.gateway.validation import EventBatch, EventValidator


@dataclass(frozen=True, slots=True)
class EventsEndpoint:
    """Accepts batches of events. Checks run in the order of their cost."""

    authenticator: Authenticator
    lockout: ClientLockout
    rates: RateLimits
    quotas: Quotas
    limits: BodyLimits
    body_reader: BodyReader
    capacity: EventCapacity
    validator: EventValidator
    preparer: RequestPreparer
    producer: EventProducer
    tracer: RequestTracer

    async def respond(self, scope: Any, protocol: Any) -> Response:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request; an invalid one gets a response too."""
        started, arrived = time.perf_counter(), time.time_ns()
        try:
            # `_receive` returns before the wait for Kafka, so that the body's memory is free meanwhile.
            response = await self._send(arrived, *await self._receive(scope, protocol))
        except RefusedError as error:
            response = refusal_response(error)
        metrics.count_request(response.status, time.perf_counter() - started)
        return response

    async def _receive(self, scope: Any, protocol: Any) -> tuple[GameKey, int, EventBatch]:  # noqa: ANN401 # see above
        """The key that signed a request, the size of its body, and its events."""
        headers = scope.headers
        signature = SignatureHeaders.of(headers)
        content_length = headers.get("content-length", "")
        try:
            key = self.authenticator.find_game_key(signature, time.time())
            body_format = self.validator.body_format(headers.get("content-type", ""))
            self.body_reader.check_content_length(content_length)
        except RefusedError:
            await self.body_reader.drain(protocol)
            raise
        # Its body is not even drained.
        self.lockout.check(key, scope.client, time.monotonic())
        body = await self.body_reader.read(content_length, protocol)
        metrics.count_body(len(body))
        with self.lockout.counting(key, scope.client, time.monotonic()):
            self.authenticator.verify(key, signature, body)
        content = decompress(body, headers.get("content-encoding", ""), self.limits.decompressed)
        raw_events = body_format.split(content, self.limits.events)
        game = self.validator.game(key.game)
        return key, len(body), EventBatch(game, body_format, raw_events, len(content), datetime.now(UTC))

    async def _send(self, arrived: int, key: GameKey, size: int, batch: EventBatch) -> Response:
        game, events = key.game, len(batch.raw_events)
        try:
            self.rates.take(game, key.rate, events, time.monotonic())
            with self.quotas.reserved(key, events, size, time.time()), self.capacity.reserved(events):
                prepared = await self.preparer.prepare(batch)
                accepted, rejections = len(prepared.records), prepared.rejections
                traced, sent = self.tracer.traced_events(prepared.records), time.time_ns()
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
