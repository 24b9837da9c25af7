"""Stores which players are about to be published, so that a crash loses no change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from gamelake.objects.store import Store

_INTENT = "_gamelake/segments/intent"


class MovesPublisher(Protocol):
    """Publishes the present segments of players."""

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        """Publish the segments (list<string>) of players (string, pseudonyms); return once Kafka has them."""

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        """Publish tombstones of players (string, pseudonyms) who no longer have events."""

    def follow_erasures(self) -> None:
        """Publish tombstones of the players who were erased since the last call."""


class NoPublisher:
    """Publishes nothing; for lakehouses without Kafka."""

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        """Accept string and list<string>, and do nothing."""

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        """Accept string, and do nothing."""

    def follow_erasures(self) -> None:
        """Do nothing."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """The players whose segments a refresh is about to publish; stored before it publishes them.

    After a crash between publication and commit, the next refresh publishes the same players again, even if
    their segments equal the committed ones by then.

    Attributes:
        generation: the id of the players' numbers.
        version: the version of the table of segments that the refresh will commit.
        movers: the players of each game, as a serialized set of numbers.
    """

    generation: str
    version: int
    movers: dict[str, bytes]


@dataclass(slots=True)
class UnsettledMoves:
    """The players whose segments may have been published without a commit.

    Attributes:
        store: the lakehouse.
    """

    store: Store
    _players: dict[str, BitMap] = field(default_factory=dict)
    _generation: str | None = None

    def recall(self, generation: str, version: int) -> Mapping[str, BitMap]:
        """Return these players by game. After a start, or if players got new numbers, read the stored intent.

        Args:
            generation: the id of the players' numbers.
            version: the current version of the table of segments.
        """
        if self._generation != generation:
            self._generation, self._players = generation, {}
            content = self.store.get(_INTENT)
            intent = None if content is None else msgspec.msgpack.decode(content, type=Intent)
            if intent is not None and intent.generation == generation and intent.version > version:
                self._players = {game: BitMap.deserialize(players) for game, players in intent.movers.items()}
        return self._players

    def intend(self, movers: Mapping[str, BitMap], generation: str, version: int) -> None:
        """Store the players who are about to be published; `version` is the table's current one."""
        self._players = {**self._players, **movers}
        sets = {game: players.serialize() for game, players in self._players.items()}
        self.store.put(_INTENT, msgspec.msgpack.encode(Intent(generation=generation, version=version + 1, movers=sets)))

    def settle(self, left: Mapping[str, BitMap]) -> None:
        """Forget all players but those in `left`, after a commit."""
        self._players = dict(left)
