"""Events of players for live operations, the expected states of players, and the records of topics."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from google.protobuf.message import Message

from tests.embedded.sending import Sender, an_event, contract_text, event_class

SCHEMAS = Path(__file__).parents[2] / "contracts" / "proto" / "live_ops" / "v1"
_HEADER_BYTES = 6
_HOUR = timedelta(hours=1)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Play:
    """An action of a player, `ago` seconds before now."""

    gamer: str
    name: str = "level_completed"
    ago: float = 0
    amount: float | None = None
    level: int | None = None
    session: str = ""
    platform: str = "ios"


@dataclass
class Expected:
    """The expected state of a player."""

    sessions: set[str] = field(default_factory=set)
    purchases: int = 0
    bookings_micros: int = 0
    last: datetime = _NEVER


def send_plays(sender: Sender, game: str, plays: Sequence[Play], now: datetime) -> None:
    """Send actions as events of version 2, which has purchases and levels."""
    source = contract_text(2)
    schema_id = sender.register(source)
    ids, values = [], []
    for number, play in enumerate(plays):
        event: Any = an_event(source, f"{game}-{play.gamer}-{number}-{now.timestamp()}", game, gamer_id=play.gamer)
        event.event_name, event.session_id, event.event_params.platform = play.name, play.session, play.platform
        event.event_time.FromDatetime(now - timedelta(seconds=play.ago))
        if play.amount is not None:
            event.event_params.amount = play.amount
        if play.level is not None:
            event.event_params.level = play.level
        ids.append(event.event_id)
        values.append(b"\x00" + schema_id.to_bytes(4, "big") + b"\x00" + event.SerializeToString())
    sender.send_values(ids, values)


def expected_states(plays: Sequence[Play], now: datetime) -> dict[str, Expected]:
    """The expected states by player, counted event by event."""
    states: defaultdict[str, Expected] = defaultdict(Expected)
    for play in plays:
        state = states[play.gamer]
        state.last = max(state.last, now - timedelta(seconds=play.ago))
        if play.name == "session_start":
            state.sessions.add(play.session)
        if play.name == "purchase" and play.amount is not None:
            state.purchases += 1
            state.bookings_micros += round(play.amount * 1_000_000)
    return dict(states)


def newest_values(bootstrap_servers: str, topic: str) -> dict[str, bytes | None]:
    """The newest value of each key of a compacted topic, None for a tombstone."""
    return dict(records(bootstrap_servers, topic))


def records(bootstrap_servers: str, topic: str) -> list[tuple[str, bytes | None]]:
    """All records of a topic, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "test", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    ends = {each: consumer.get_watermark_offsets(TopicPartition(topic, each), 30)[1] for each in partitions}
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found, left = [], {each for each, end in ends.items() if end}
    while left:
        for message in consumer.consume(1000, 10):
            assert message.error() is None
            found.append(((message.key() or b"").decode(), message.value()))
            if (message.offset() or 0) + 1 >= ends[message.partition() or 0]:
                left.discard(message.partition() or 0)
    consumer.close()
    return found


def read(value: bytes, schema: str) -> Message:
    return event_class((SCHEMAS / schema).read_text())().FromString(value[_HEADER_BYTES:])


def in_last_hour(plays: Sequence[Play], gamer: str, newest_ago: float) -> int:
    """The spending of a player in the hour before the newest event."""
    recent = [each for each in plays if each.gamer == gamer and each.name == "purchase" and each.amount is not None]
    return sum(
        round((each.amount or 0) * 1_000_000) for each in recent if each.ago - newest_ago < _HOUR.total_seconds()
    )


def tables_row(rows: Sequence[Mapping[str, Any]], gamer: str) -> Mapping[str, Any]:
    (row,) = [row for row in rows if row["gamer_id"] == gamer]
    return row
