"""A process of the gateway from parsed bodies to records, with a vault that fails by plan; and random bodies for it."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import SealedData, StoredPlayer, VaultUnavailableError
from gamelake.schemas.framing import HEADER_BYTES
from services.gateway.errors import EventRejection, Reason, UnavailableError
from services.gateway.events.batching import BatchingPace, LoopBatcher
from services.gateway.events.preparation import BatchPreparer, PreparedBatch, UnknownPlayers
from services.gateway.events.request_preparation import RequestPreparer
from services.gateway.events.validation import JSON, PROTOBUF, EventBatch
from services.gateway.kafka_producer import Record
from services.gateway.personal.pseudonymization import PlayerCache
from services.gateway.personal.vault_client import BatchedVault, PlayerStore
from tests.support.vault_keys import key_file
from tests.unit.gateway.damaged_events import NOW, damaged_message, damaged_text, joined
from tests.unit.gateway.events import GAME, MAX_EVENTS, batch_of, cache_of, columnar_preparer, row_preparer, schema

MANY = MAX_EVENTS
NO_PAUSE = BatchingPace(pause=timedelta(0), flush_size=MANY)


@dataclass(frozen=True, slots=True)
class Body:
    """The events of a body: texts in JSON, or messages in Protobuf."""

    content_type: str
    events: Sequence[bytes]

    def content(self) -> bytes:
        return joined(self.content_type, self.events)

    def batch(self) -> EventBatch:
        """Split the body, as the gateway does each time it receives the body."""
        return batch_of(self.content(), self.content_type, arrived=NOW)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one event: a rejection, or a player's record and the personal data that the vault stores."""

    rejection: tuple[Reason, str] | None = None
    player: str = ""
    record: Message | None = None
    personal: frozenset[bytes] = frozenset()


def outcome_alone(content_type: str, event: bytes) -> Outcome:
    """Return the result of an event that is sent alone by a known player."""
    cache, names = cache_of(MANY), dict[str, str]()
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


def batch_preparer(cache: PlayerCache, min_columnar_events: int, max_rows: int = MANY) -> BatchPreparer:
    return BatchPreparer(row_preparer(cache), columnar_preparer(cache), min_columnar_events, max_rows)


class Answer(Enum):
    """The way in which the vault handles a call."""

    DONE = "succeeds"
    LOST = "fails before it changes anything"
    UNANSWERED = "fails after its transaction"


class FaultyVault(SqliteVault):
    """Follows a plan of answers; after the plan every call succeeds."""

    plan: deque[Answer] = deque()  # noqa: RUF012 # a world sets its own

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        answer = self._next()
        found = super().find(tokens)
        self._fail_if(answer is Answer.UNANSWERED)
        return found

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
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
    """The known players, the size of the cache, the least number of events for columns, and the vault's answers.

    Also how many events are prepared one by one at once.
    """

    known: frozenset[str] = frozenset()
    remembered: int = MANY
    min_columnar_events: int = MANY
    max_rows: int = MANY
    answers: Sequence[Answer] = ()


class World:
    """A process of the gateway, from parsed bodies to records, and an empty vault."""

    def __init__(self, vault: FaultyVault, keyring: VaultKeyring, circumstances: Circumstances) -> None:
        self._vault, self._keyring = vault, keyring
        cache = cache_of(circumstances.remembered)
        max_rows = circumstances.max_rows
        self.batches = batch_preparer(cache, circumstances.min_columnar_events, max_rows)
        self._players = PlayerStore(cache, BatchedVault(vault, keyring))
        self.preparer = RequestPreparer(LoopBatcher(self.batches.prepare, NO_PAUSE), self._players, max_rows)
        self._circumstances = circumstances

    def send(self, bodies: Sequence[Body]) -> Sequence[PreparedBatch]:
        """Send bodies concurrently, each again until the gateway accepts it."""

        async def run() -> Sequence[PreparedBatch]:
            await self.begin()
            return await asyncio.gather(*map(self._until_accepted, bodies))

        return asyncio.run(run())

    async def begin(self) -> None:
        """Make the known players known; from here on the vault follows its plan."""
        if self._circumstances.known:
            await self._players.resolve(GAME, sorted(self._circumstances.known))
        self._vault.plan = deque(self._circumstances.answers)

    async def _until_accepted(self, body: Body) -> PreparedBatch:
        for _ in range(len(self._circumstances.answers)):
            try:
                return await self.preparer.prepare(body.batch())
            except UnavailableError:
                continue
        return await self.preparer.prepare(body.batch())

    def players(self) -> Mapping[str, str]:
        """Return the game of each player that the vault has, by pseudonym."""
        return {each.player.pseudonym: each.player.game for each in self._vault.records(b"", MANY)}

    def personal_data_of(self, pseudonym: str) -> frozenset[bytes]:
        """Return all personal data of a player in the vault, decrypted."""
        row = self._vault.named(pseudonym)
        assert row is not None
        key = self._keyring.now.unwrap(row)
        return frozenset(map(key.open, self._vault.data_of(pseudonym)))


@contextmanager
def a_world(folder: Path, circumstances: Circumstances) -> Iterator[World]:
    """A new process and an empty vault in a folder, until the block ends."""
    with closing(FaultyVault(folder / "vault.db")) as vault:
        yield World(vault, VaultKeyring(key_file(folder)), circumstances)


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
    remembered=st.sampled_from([1, 2, MANY]),
    min_columnar_events=st.sampled_from([1, 3, MANY]),
    max_rows=st.sampled_from([1, 2, MANY]),
    answers=st.lists(st.sampled_from(Answer), max_size=5),
)
