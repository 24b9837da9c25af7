"""One request to send events, from its headers to its answer."""

import time
from dataclasses import dataclass, replace
from typing import Any

from services.gateway import metrics
from services.gateway.authentication import Authenticator, Claim
from services.gateway.batching import Gathering
from services.gateway.errors import RefusedError, TooManyEventsError
from services.gateway.kafka_producer import Outbox
from services.gateway.limits import RateLimits, Room
from services.gateway.personal.vault_client import Guard, vault_asked
from services.gateway.preparation import Parcel, Prepared, Ready, Strangers
from services.gateway.request_body import Receiver, unpack
from services.gateway.responses import Answer, refused, taken
from services.gateway.settings import BodyLimits
from services.gateway.validation import Admission


@dataclass(frozen=True, slots=True)
class EventsEndpoint:
    """Takes batches of events; cheap refusals come before dear ones."""

    authenticator: Authenticator
    rates: RateLimits
    limits: BodyLimits
    receiver: Receiver
    room: Room
    admission: Admission
    gathering: Gathering[Parcel, Prepared]
    guard: Guard
    outbox: Outbox

    async def answer(self, scope: Any, protocol: Any) -> Answer:  # noqa: ANN401 # RSGI's, which has no types
        """Answer a request; whatever is wrong with it is an answer too."""
        started = time.perf_counter()
        try:
            # What was received is let go of before its events wait for anybody.
            answer = await self._pass_on(await self._received(scope.headers, protocol))
        except RefusedError as error:
            answer = refused(error)
        metrics.count_request(answer.status, time.perf_counter() - started)
        return answer

    async def _received(self, headers: Any, protocol: Any) -> Parcel:  # noqa: ANN401 # see above
        claim = Claim.of(headers)
        announced = headers.get("content-length", "")
        try:
            key = self.authenticator.recognise(claim, time.time())
            form = self.admission.form(headers.get("content-type", ""))
            self.receiver.check_announced(announced)
        except RefusedError:
            await self.receiver.discard(protocol)
            raise
        body = await self.receiver.receive(announced, protocol)
        metrics.count_body(len(body))
        self.authenticator.check(key, claim, body)
        content = unpack(body, headers.get("content-encoding", ""), self.limits.unpacked)
        written = form.split(content, self.limits.events)
        try:
            self.rates.take(key.game, key.rate, len(written), time.monotonic())
        except TooManyEventsError:
            metrics.count_throttled(key.game, len(written))
            raise
        return Parcel(self.admission.game(key.game), form, written)

    async def _pass_on(self, parcel: Parcel) -> Answer:
        game, events = parcel.game.name, len(parcel.written)
        with self.room.taken(events):
            ready = await self._prepared(parcel)
            accepted, rejections = len(ready.records), ready.rejections
            confirmed = self.outbox.send(ready.records)
            # What waits for Kafka is in the client's queue: neither events nor records may wait here beside it.
            del parcel, ready
            await confirmed
        metrics.count_events(game, accepted, rejections)
        return taken(accepted, rejections)

    async def _prepared(self, parcel: Parcel) -> Ready:
        """The parcel's records, once the vault has what was cut out of its events."""
        with vault_asked():
            prepared = await self.gathering.ask(parcel, len(parcel.written))
            while isinstance(prepared, Strangers):
                introduced = await self.guard.introduce(parcel.game.name, prepared.names)
                parcel = replace(parcel, introduced={**parcel.introduced, **introduced})
                prepared = await self.gathering.ask(parcel, len(parcel.written))
            if prepared.belongings:
                await self.guard.keep(parcel.game.name, prepared.belongings)
        return prepared.without_large_records()
