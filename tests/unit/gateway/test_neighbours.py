"""A good event is accepted, once and whole, whatever else its body contains and whatever happens in the meantime.

The result of an event depends only on that event. It does not depend on other events or bodies, on which players the
cache holds, or on an outage of the vault after which the sender sends the body again.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import SealedData, StoredPlayer, VaultUnavailableError
from gamelake.schemas.framing import HEADER_BYTES
from services.gateway.batching import BatchingPace, LoopBatcher
from services.gateway.errors import EventRejection, Reason, UnavailableError
from services.gateway.kafka_producer import Record
from services.gateway.personal.pseudonymization import PlayerCache
from services.gateway.personal.vault_client import BatchedVault, PlayerStore
from services.gateway.preparation import BatchPreparer, PreparedBatch, UnknownPlayers
from services.gateway.request_preparation import RequestPreparer
from services.gateway.validation import JSON, MAX_EVENT_BYTES, PROTOBUF, EventBatch
from tests.logged import logged
from tests.unit.gateway.damaged_events import (
    BROKEN_VALUES,
    NOW,
    a_full_event,
    damaged_message,
    damaged_text,
    joined,
    message_of,
    with_broken_value,
)
from tests.unit.gateway.events import (
    GAME,
    MAX_EVENTS,
    an_event,
    batch_of,
    columnar_preparer,
    row_preparer,
    schema,
    validator,
)
from tests.unit.properties import examples
from tests.vault_keys import key_file

_MANY = MAX_EVENTS
_NO_PAUSE = BatchingPace(pause=timedelta(0), flush_size=_MANY)


@dataclass(frozen=True, slots=True)
class Body:
    """The events of a body: texts in JSON, or messages in Protobuf."""

    content_type: str
    events: Sequence[bytes]

    def batch(self) -> EventBatch:
        """Split the body, as the gateway does each time it receives the body."""
        return batch_of(joined(self.content_type, self.events), self.content_type, arrived=NOW)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one event: a rejection, or a player's record and the personal data that the vault stores."""

    rejection: tuple[Reason, str] | None = None
    player: str = ""
    record: Message | None = None
    personal: frozenset[bytes] = frozenset()


def outcome_alone(content_type: str, event: bytes) -> Outcome:
    """Return the result of an event that is sent alone by a known player."""
    cache, names = PlayerCache(_MANY), dict[str, str]()
    preparer = row_preparer(cache)
    prepared = preparer.prepare(Body(content_type, [event]).batch())
    if isinstance(prepared, UnknownPlayers):
        keys = {name: PlayerKey.new(GAME) for name in prepared.names}
        names = {key.pseudonym: name for name, key in keys.items()}
        cache.add(GAME, keys)
        prepared = preparer.prepare(Body(content_type, [event]).batch())
    assert isinstance(prepared, PreparedBatch)
    if prepared.rejections:
        return Outcome((prepared.rejections[0].reason, prepared.rejections[0].field))
    (record,) = prepared.records
    data = frozenset(each.data for each in prepared.personal_data)
    return Outcome(None, names[record["key"]], without_pseudonym(record), data)


def without_pseudonym(record: Record) -> Message:
    event: Message = GetMessageClass(schema().message).FromString(record["value"][HEADER_BYTES:])
    assert event.gamer_id == record["key"]  # type: ignore[attr-defined]
    event.ClearField("gamer_id")
    return event


def batch_preparer(cache: PlayerCache, min_columnar_events: int) -> BatchPreparer:
    return BatchPreparer(row_preparer(cache), columnar_preparer(cache), min_columnar_events)


class Answer(Enum):
    """How the vault handles a call."""

    DONE = "succeeds"
    LOST = "fails before it changes anything"
    UNANSWERED = "fails after its transaction"


class FaultyVault(SqliteVault):
    """Follows a plan of answers; after the plan every call succeeds."""

    plan: deque[Answer] = deque()  # noqa: RUF012 # a world sets its own

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        answer = self._next()
        found = super().find(tokens)
        self._fail_if(answer is Answer.UNANSWERED)
        return found

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        answer = self._next()
        taken = super().take(players, data)
        self._fail_if(answer is Answer.UNANSWERED)
        return taken

    def _next(self) -> Answer:
        answer = self.plan.popleft() if self.plan else Answer.DONE
        self._fail_if(answer is Answer.LOST)
        return answer

    @staticmethod
    def _fail_if(fails: bool) -> None:
        if fails:
            raise VaultUnavailableError("by plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The known players, the size of the cache, the least number of events for columns, and the vault's answers."""

    known: frozenset[str] = frozenset()
    remembered: int = _MANY
    min_columnar_events: int = _MANY
    answers: Sequence[Answer] = ()


class World:
    """A process of the gateway, from parsed bodies to records, and an empty vault."""

    def __init__(self, vault: FaultyVault, keyring: VaultKeyring, circumstances: Circumstances) -> None:
        self._vault, self._keyring = vault, keyring
        cache = PlayerCache(circumstances.remembered)
        batcher = LoopBatcher(batch_preparer(cache, circumstances.min_columnar_events).prepare, _NO_PAUSE)
        self._players = PlayerStore(cache, BatchedVault(vault, keyring))
        self._preparer = RequestPreparer(batcher, self._players)
        self._circumstances = circumstances

    def send(self, bodies: Sequence[Body]) -> Sequence[PreparedBatch]:
        """Send bodies concurrently, each again until the gateway accepts it."""

        async def run() -> Sequence[PreparedBatch]:
            if self._circumstances.known:
                await self._players.resolve(GAME, sorted(self._circumstances.known))
            self._vault.plan = deque(self._circumstances.answers)
            return await asyncio.gather(*map(self._until_accepted, bodies))

        return asyncio.run(run())

    async def _until_accepted(self, body: Body) -> PreparedBatch:
        for _ in range(len(self._circumstances.answers)):
            try:
                return await self._preparer.prepare(body.batch())
            except UnavailableError:
                continue
        return await self._preparer.prepare(body.batch())

    def personal_data_of(self, pseudonym: str) -> frozenset[bytes]:
        """Return all personal data of a player in the vault, decrypted."""
        row = self._vault.named(pseudonym)
        assert row is not None
        key = self._keyring.now.unwrap(row)
        return frozenset(map(key.open, self._vault.data_of(pseudonym)))


MakeWorld = Callable[[Circumstances], AbstractContextManager[World]]


@pytest.fixture
def world(tmp_path: Path) -> MakeWorld:
    """Make a separate world for each example."""
    keyring = VaultKeyring(key_file(tmp_path))

    @contextmanager
    def make(circumstances: Circumstances) -> Iterator[World]:
        with TemporaryDirectory(dir=tmp_path) as folder, closing(FaultyVault(Path(folder) / "vault.db")) as vault:
            yield World(vault, keyring, circumstances)

    return make


def assert_as_alone(world: World, bodies: Sequence[Body]) -> None:
    """Send bodies, and compare the result of each event with its result when it is sent alone."""
    pseudonyms: dict[str, set[str]] = defaultdict(set)
    personal: dict[str, set[bytes]] = defaultdict(set)
    for body, prepared in zip(bodies, world.send(bodies), strict=True):
        alone = [outcome_alone(body.content_type, event) for event in body.events]
        accepted = [each for each in alone if each.rejection is None]
        assert prepared.rejections == [
            EventRejection(index, *each.rejection) for index, each in enumerate(alone) if each.rejection is not None
        ]
        assert [without_pseudonym(record) for record in prepared.records] == [each.record for each in accepted]
        for record, outcome in zip(prepared.records, accepted, strict=True):
            pseudonyms[outcome.player].add(record["key"])
            personal[record["key"]] |= outcome.personal
    assert len(personal) == len(pseudonyms) == sum(map(len, pseudonyms.values()))
    assert {pseudonym: world.personal_data_of(pseudonym) for pseudonym in personal} == personal


PLAYERS = st.sampled_from(["ann", "bob", "çelik", "dee"])
BODIES = st.one_of(
    st.builds(Body, st.just(JSON), st.lists(damaged_text(PLAYERS), min_size=1, max_size=5)),
    st.builds(Body, st.just(PROTOBUF), st.lists(damaged_message(PLAYERS), min_size=1, max_size=5)),
)
CIRCUMSTANCES = st.builds(
    Circumstances,
    known=st.frozensets(PLAYERS),
    remembered=st.sampled_from([1, 2, _MANY]),
    min_columnar_events=st.sampled_from([1, 3, _MANY]),
    answers=st.lists(st.sampled_from(Answer), max_size=5),
)


def test_each_event_of_a_body_becomes_what_it_would_become_alone(world: MakeWorld) -> None:
    @examples(200)
    @given(CIRCUMSTANCES, st.lists(BODIES, min_size=1, max_size=2))
    def check(circumstances: Circumstances, bodies: Sequence[Body]) -> None:
        with world(circumstances) as gateway:
            assert_as_alone(gateway, bodies)

    check()


@examples(150)
@given(BODIES, st.sampled_from([1, _MANY]))
def test_a_batch_prepared_twice_gives_the_same_as_prepared_once(body: Body, min_columnar_events: int) -> None:
    cache = PlayerCache(_MANY)
    preparer, batch = batch_preparer(cache, min_columnar_events), body.batch()

    (first,) = preparer.prepare([batch])
    (again,) = preparer.prepare([batch])
    assert again == first
    if isinstance(first, UnknownPlayers):
        cache.add(GAME, {name: PlayerKey.new(GAME) for name in first.names})
        (first,) = preparer.prepare([batch])
        (again,) = preparer.prepare([batch])
        assert again == first
    assert isinstance(first, PreparedBatch)


@pytest.mark.parametrize("value", BROKEN_VALUES)
def test_an_event_that_is_not_json_is_rejected_and_costs_no_neighbour(value: bytes, world: MakeWorld) -> None:
    good = [json.dumps(an_event(gamer_id="neighbour")).encode() for _ in range(3)]
    broken = with_broken_value(a_full_event(), value)

    with world(Circumstances()) as gateway:
        (prepared,) = gateway.send([Body(JSON, [good[0], broken, *good[1:]])])

    assert len(prepared.records) == 3
    assert prepared.rejections == [EventRejection(1, Reason.MALFORMED)]


def written(content_type: str, event: Mapping[str, Any]) -> bytes:
    return message_of(dict(event)).SerializeToString() if content_type == PROTOBUF else json.dumps(event).encode()


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("min_columnar_events", [1, _MANY])
def test_an_event_too_large_for_kafka_is_rejected_and_its_personal_data_stays_out_of_the_vault(
    content_type: str, min_columnar_events: int, world: MakeWorld
) -> None:
    large = {"attributes": {"a": "x" * MAX_EVENT_BYTES}, "personal": {"email": "large@example.org"}}
    small, long_name = {"personal": {"email": "small@example.org"}}, {"gamer_id": "n" * MAX_EVENT_BYTES}
    events = [written(content_type, an_event(**fields)) for fields in (small, large, long_name, small)]

    with world(Circumstances(min_columnar_events=min_columnar_events)) as gateway:
        (prepared,) = gateway.send([Body(content_type, events)])
        (stored,) = gateway.personal_data_of(prepared.records[0]["key"])

    assert prepared.rejections == [EventRejection(1, Reason.TOO_LARGE), EventRejection(2, Reason.TOO_LARGE)]
    assert len(prepared.records) == 2
    assert b"small@example.org" in stored


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("min_columnar_events", [1, _MANY])
def test_an_event_up_to_the_limit_of_kafka_is_accepted(
    content_type: str, min_columnar_events: int, world: MakeWorld
) -> None:
    almost = written(content_type, an_event(attributes={"a": "x" * (MAX_EVENT_BYTES - 1_000)}))

    with world(Circumstances(min_columnar_events=min_columnar_events)) as gateway:
        (prepared,) = gateway.send([Body(content_type, [almost])])

    assert len(prepared.records) == 1


def test_an_unforeseen_error_rejects_its_event_alone_and_the_log_quotes_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, world: MakeWorld
) -> None:
    body_format = validator().body_format(PROTOBUF)
    read = body_format.read

    def fail_for_bob(raw_event: bytes) -> Message:
        event = read(raw_event)
        if event.gamer_id == "bob":  # type: ignore[attr-defined]
            raise RuntimeError("bob@example.org")
        return event

    monkeypatch.setattr(body_format, "read", fail_for_bob)
    events = [message_of(an_event(gamer_id=name)).SerializeToString() for name in ("ann", "bob", "bob", "ann")]

    with world(Circumstances(known=frozenset({"ann"}))) as gateway:
        (prepared,) = gateway.send([Body(PROTOBUF, events)])

    assert [(each.index, each.reason) for each in prepared.rejections] == [(1, Reason.MALFORMED), (2, Reason.MALFORMED)]
    assert len(prepared.records) == 2
    assert [each["error_types"] for each in logged(caplog, "events_unreadable")] == [{"RuntimeError": 2}]
    assert "example.org" not in caplog.text
