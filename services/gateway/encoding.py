"""Events as Kafka gets them: in the Confluent wire format, under the lake's schema, keyed by player."""

from collections.abc import Sequence

from google.protobuf.message import Message

from gamelake.wire.framing import frame_header
from services.gateway.producing import Record


class Encoder:
    """Writes events of the submitted contract, whose personal fields are gone, under a schema that never had them."""

    def __init__(self, schema_id: int) -> None:
        self._header = frame_header(schema_id)

    def encode(self, events: Sequence[Message]) -> list[Record]:
        """One record per event; a player's events stay in order in one partition, a game's spread over all."""
        return [
            {"key": event.gamer_id, "value": self._header + event.SerializeToString()}  # type: ignore[attr-defined]
            for event in events
        ]
