"""Publishes each player's current segments to a compacted topic, with the delivery rules of live operations."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import GamesContract
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.schemas.compiler import ROOT_FILE, compile_sources
from gamelake.schemas.event_schemas import register_text
from gamelake.serving.gold.settings import SegmentsTopic
from gamelake.serving.live_ops.plan import Publication
from gamelake.serving.live_ops.publishing import Publisher, player_keys

_SCHEMA = Path(__file__).parents[3] / "contracts" / "proto" / "live_ops" / "v1" / "player_segments.proto"
_POLL_SECONDS = 5.0


def publication(topic: SegmentsTopic) -> Publication:
    """Register the schema of players' segments, and return the topic to publish to.

    Raises:
        RegistryUnavailableError: the registry did not accept the schema.
    """
    text = _SCHEMA.read_text(encoding="utf-8")
    schema_id = register_text(text, registry_url=topic.registry_url, topic=topic.name, writer=topic.registry_writer)
    return Publication(topic.kafka, topic.name, schema_id, compile_sources({ROOT_FILE: text}).SerializeToString())


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class SegmentPublisher:
    """Publishes the segments of players; connects at the first call. One thread uses it at a time.

    The key is `<game>/<gamer_id>`, with the game's name in the games contract. Games that the contract doesn't list are
    not published. An erased player gets a tombstone and is never published again.

    Attributes:
        topic: the topic.
        store: the lakehouse, which has the erasure records.
        games: the games contract.
        now: returns the time of the platform's clock.
    """

    topic: SegmentsTopic
    store: Store
    games: GamesContract
    now: Callable[[], datetime] = _now
    _publisher: Publisher | None = None
    _runs: set[str] = field(default_factory=set)
    _erased: set[bytes] = field(default_factory=set)
    _polled_at: float = float("-inf")

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        """Publish the segments of players of a game, and wait until Kafka has acknowledged them.

        Args:
            title: the game's title.
            gamer_ids: string, the players' pseudonyms.
            segments: list<string>, the segments of each.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
            RegistryUnavailableError: the registry did not accept the schema.
        """
        game = self.games.name_of(title)
        if game is None or not len(gamer_ids):
            return
        keys = self._keys(game, gamer_ids)
        rows = pa.table(
            {
                "game": pa.repeat(pa.scalar(game), len(gamer_ids)),
                "gamer_id": gamer_ids,
                "as_of": pa.repeat(pa.scalar(self.now(), pa.timestamp("us", "UTC")), len(gamer_ids)),
                "segments": segments,
            }
        )
        is_shown = pc.invert(pc.is_in(keys, pa.array(self._erased, pa.binary())))
        self._opened().publish(keys.filter(is_shown), rows.filter(is_shown))

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        """Publish tombstones of players of a game who no longer have events.

        Args:
            title: the game's title.
            gamer_ids: string, the players' pseudonyms.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        game = self.games.name_of(title)
        if game is not None and len(gamer_ids):
            self._opened().forget(self._keys(game, gamer_ids))

    def follow_erasures(self) -> None:
        """Publish tombstones of the players whose erasure was requested since the last call.

        The first call after a start publishes all tombstones again, which changes nothing.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        if time.monotonic() - self._polled_at < _POLL_SECONDS:
            return
        names = tuple(game.name for game in self.games.games)
        found = ErasureRecords(self.store).requested_since(frozenset(self._runs))
        keys = {
            f"{game}/{pseudonym}".encode()
            for request in found.values()
            for pseudonym in request.pseudonyms
            for game in ([request.game] if request.game else names)
        }
        self._erased |= keys
        if keys:
            self._opened().forget(pa.array(sorted(keys), pa.binary()))
        self._runs |= found.keys()
        self._polled_at = time.monotonic()

    def _opened(self) -> Publisher:
        if self._publisher is None:
            self._publisher = Publisher(publication(self.topic))
        return self._publisher

    def _keys(self, game: str, gamer_ids: pa.Array) -> pa.Array:
        return player_keys(pa.repeat(pa.scalar(game), len(gamer_ids)), gamer_ids)
