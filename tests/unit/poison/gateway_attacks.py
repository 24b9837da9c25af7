"""A process of the gateway that takes hostile requests and those of other games at the same time."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import msgspec
from google.protobuf.message import Message
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # exported, but not by its type

from gamelake.kafka import KafkaAccess
from services.gateway import kafka_producer
from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, Authenticator, Keyring, sign
from services.gateway.errors import EventRejection
from services.gateway.events.batching import LoopBatcher
from services.gateway.events.endpoint import EventsEndpoint
from services.gateway.events.preparation import PreparationResult
from services.gateway.events.validation import JSON, EventBatch
from services.gateway.kafka_producer import EventProducer, QueueLimits, Record
from services.gateway.limits.memory_budget import MemoryBudget
from services.gateway.limits.quotas import Quotas
from services.gateway.limits.rates import RateLimits
from services.gateway.limits.turns import Turns
from services.gateway.request_body import BodyReader
from services.gateway.responses import Response
from services.gateway.settings import BodyLimits
from services.gateway.traces import RequestTracer
from tests.unit.gateway.events import GAME, an_event, contract, validator
from tests.unit.gateway.flag_requests import SECRET
from tests.unit.gateway.worlds import NO_PAUSE, Body, Outcome, World, a_world, outcome_alone, without_pseudonym
from tests.unit.poison.budgets import budget
from tests.unit.poison.gateway_requests import (
    ATTACKER,
    MIB,
    NEIGHBOUR,
    GatewayAttack,
    HostileRequest,
    compressed,
    expanding_request,
)

_LIMITS = BodyLimits(size=MIB, decompressed=MIB, events=2_000, timeout=timedelta(seconds=10))
# As `GatewaySettings.check_memory` requires for these limits. A process may grow by some more.
_MEMORY, _MOST_MIB = 32 * MIB, 80
_KEYS = "keys:\n" + "".join(
    f"  - {{id: {game}, game: {game}, secrets: [{SECRET}], rate: 10000000}}\n" for game in (GAME, ATTACKER, NEIGHBOUR)
)
_REFUSALS = frozenset({400, 401, 408, 413, 415, 503})
_GOOD_EVENTS = 3


class _BatchResult(msgspec.Struct):
    accepted: int
    rejected: list[EventRejection]


class _Kafka:
    """Kafka's client: keeps what it confirms, and confirms nothing of the first sends."""

    def __init__(self, unconfirmed: int) -> None:
        self.records: list[Record] = []
        self._unconfirmed = unconfirmed
        self._reports: list[Callable[[], None]] = []

    def produce_batch(self, _topic: str, batch: Sequence[Record], on_delivery: Callable[[object, object], None]) -> int:
        error = "no answer" if self._unconfirmed > 0 else None
        self._unconfirmed -= 1
        if error is None:
            self.records += batch
        self._reports += [partial(on_delivery, error, None)] * len(batch)
        return len(batch)

    def poll(self, _seconds: float) -> int:
        reports, self._reports = self._reports, []
        for report in reports:
            report()
        return len(reports)


class IncomingRequest:
    """The body of a request, as the server gives it."""

    def __init__(self, request: HostileRequest) -> None:
        self._request = request

    async def __call__(self) -> bytes:
        """All of it."""
        return b"".join([chunk async for chunk in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Its chunks."""
        for chunk in self._request.chunks:
            await asyncio.sleep(0)
            yield chunk
        if self._request.is_cut:
            raise ProtocolClosed


def headers_of(request: HostileRequest, key: str) -> Mapping[str, str]:
    """The headers of a request that this key signs; the request's own replace them."""
    body, timestamp = b"".join(request.chunks), str(int(time.time()))
    headers = {
        "content-type": JSON,
        "content-length": str(len(body)),
        KEY_HEADER: key,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, body),
    }
    return {name: value for name, value in {**headers, **request.headers}.items() if value is not None}


def prepared_twice(
    prepare: Callable[[Sequence[EventBatch]], Sequence[PreparationResult]], batches: Sequence[EventBatch]
) -> Sequence[PreparationResult]:
    """Prepare batches twice, which must give the same."""
    once, twice = prepare(batches), prepare(batches)
    assert twice == once, "a batch that is prepared twice gives another result"
    return once


def _plain(event: Message) -> bytes:
    """An event without what each attempt to send it changes."""
    event.ClearField("ingest_time")
    return event.SerializeToString(deterministic=True)


def _request_of(body: Body, encoding: str) -> HostileRequest:
    content = compressed(body.content(), encoding)
    return HostileRequest(chunks=[content], headers={"content-type": body.content_type, "content-encoding": encoding})


class Gateway:
    """The endpoint for events with all that it needs; preparing a batch twice must give the same."""

    def __init__(self, folder: Path, world: World, attack: GatewayAttack) -> None:
        self.kafka = _Kafka(attack.unconfirmed)
        self._attempts = len(attack.circumstances.answers) + attack.unconfirmed + 1
        file = folder / "ingest-keys"
        file.write_text(_KEYS, encoding="utf-8")
        limits = QueueLimits(_MEMORY, timedelta(seconds=15))
        with patch.object(kafka_producer, "Producer", lambda _settings: self.kafka):
            producer = EventProducer(KafkaAccess("nowhere:9092"), "events", limits)
        prepare = partial(prepared_twice, world.batches.prepare)
        self.endpoint = EventsEndpoint(
            authenticator=Authenticator(Keyring(file, contract()), timedelta(seconds=300)),
            rates=RateLimits(timedelta(seconds=2)),
            quotas=Quotas(None),
            limits=_LIMITS,
            body_reader=BodyReader(_LIMITS),
            memory=MemoryBudget(_MEMORY),
            turns=Turns(),
            validator=validator(),
            preparer=replace(world.preparer, batcher=LoopBatcher(prepare, NO_PAUSE)),
            producer=producer,
            tracer=RequestTracer(),
        )

    async def send(self, request: HostileRequest, game: str) -> Response:
        """Send a request once, with the right headers where it has none."""
        scope = SimpleNamespace(headers=headers_of(request, game), client="192.0.2.1:1234")
        return await self.endpoint.respond(scope, IncomingRequest(request))

    async def send_until_accepted(self, request: HostileRequest, game: str) -> Response:
        """Send a request again while the vault or Kafka fails."""
        for _ in range(self._attempts):
            response = await self.send(request, game)
            if response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return response
        raise AssertionError(f"the gateway refuses a request of {game}: {response}")


@dataclass(frozen=True, slots=True)
class _Responses:
    """The responses to an attack's requests, in their order."""

    bodies: Sequence[Response]
    hostile: Sequence[Response]
    neighbours: Sequence[Response]


async def _send_all(gateway: Gateway, world: World, attack: GatewayAttack, good: Sequence[Body]) -> _Responses:
    await world.begin()
    count, kind = attack.expanding
    hostile = [*attack.hostile, *[expanding_request(kind)] * count]
    bodies = [gateway.send_until_accepted(_request_of(*each), GAME) for each in attack.bodies]
    neighbours = [gateway.send_until_accepted(_request_of(each, "identity"), NEIGHBOUR) for each in good]
    first, *others = neighbours
    responses = await asyncio.gather(first, *[gateway.send(each, ATTACKER) for each in hostile], *bodies, *others)
    split = 1 + len(hostile)
    end = split + len(bodies)
    return _Responses(responses[split:end], responses[1:split], [responses[0], *responses[end:]])


def check_gateway_attack(attack: GatewayAttack, folder: Path) -> None:
    """Send an attack; each event must be accepted or rejected as it is alone, within the budget."""
    good = [_good_body(f"neighbour-{number}") for number in range(2)]
    with a_world(folder, attack.circumstances) as world:
        gateway = Gateway(folder, world, attack)
        with budget(_MOST_MIB):
            responses = asyncio.run(_send_all(gateway, world, attack, good))
        assert gateway.endpoint.memory.reserved == 0
        accepted = _check_responses(attack, responses)
        outcomes = [outcome_alone(body.content_type, event) for body, _ in attack.bodies for event in body.events]
        expected = [each for each in outcomes if each.rejection is None]
        _check_topic(gateway.kafka.records, expected, accepted)
        _check_vault(world, attack, expected, accepted)


def _good_body(player: str) -> Body:
    return Body(JSON, [msgspec.json.encode(an_event(gamer_id=player)) for _ in range(_GOOD_EVENTS)])


def _check_responses(attack: GatewayAttack, responses: _Responses) -> int:
    """Check what each request got. Return how many events of the attacker were accepted, or may have been."""
    for (body, _), response in zip(attack.bodies, responses.bodies, strict=True):
        alone = [outcome_alone(body.content_type, event).rejection for event in body.events]
        rejected = [EventRejection(index, *each) for index, each in enumerate(alone) if each is not None]
        wanted, got = _BatchResult(len(alone) - len(rejected), rejected), _result(response)
        assert got == wanted, f"its neighbours change what becomes of an event: {got} instead of {wanted}"
    for response in responses.neighbours:
        assert _result(response) == _BatchResult(_GOOD_EVENTS, [])
    assert {each.status for each in responses.hostile} <= _REFUSALS | {HTTPStatus.OK}
    for response in responses.hostile:
        assert response.status != HTTPStatus.SERVICE_UNAVAILABLE or "retry-after" in dict(response.headers)
    return sum(_result(each).accepted for each in responses.hostile if each.status == HTTPStatus.OK)


def _result(response: Response) -> _BatchResult:
    assert response.status == HTTPStatus.OK, response
    return msgspec.json.decode(response.body, type=_BatchResult)


def _check_topic(records: Sequence[Record], expected: Sequence[Outcome], accepted: int) -> None:
    """Check that Kafka has each accepted event once, and nothing else."""
    events = [without_pseudonym(record) for record in records]
    of_game = Counter(event.game_name for event in events)  # type: ignore[attr-defined] # made at run time
    names = {game.name: game.game_name for game in contract().games}
    assert of_game[names[ATTACKER]] == accepted
    assert of_game[names[NEIGHBOUR]] == 2 * _GOOD_EVENTS
    ours = [event for event in events if event.game_name == names[GAME]]  # type: ignore[attr-defined] # see above
    assert Counter(map(_plain, ours)) == Counter(_plain(each.record) for each in expected if each.record is not None)


def _check_vault(world: World, attack: GatewayAttack, expected: Sequence[Outcome], accepted: int) -> None:
    """Check that the vault has the players and the personal data of accepted events, and nothing else."""
    data: dict[str, frozenset[bytes]] = dict.fromkeys(attack.circumstances.known, frozenset())
    for outcome in expected:
        data[outcome.player] = data.get(outcome.player, frozenset()) | outcome.personal
    players = world.players()
    of_game = Counter(players.values())
    assert Counter(world.personal_data_of(each) for each, game in players.items() if game == GAME) == Counter(
        data.values()
    )
    assert of_game[NEIGHBOUR] == 2
    may_have_stored = accepted or attack.circumstances.answers or attack.unconfirmed
    assert may_have_stored or not of_game[ATTACKER]
