"""Events of a few days of play, for which every example query has a result."""

import uuid
from datetime import UTC, datetime, timedelta

from google.protobuf.message import Message

from tests.embedded.sending import Sender, contract_text, event_class, framed

GAMES = ("Archery Duel", "Bingo Harbor")
NAMES = ("session_start", "level_started", "purchase")
_PLAYERS, _HOURS = 10, 60


def send_played(sender: Sender, schema_id: int, events: int = 180) -> None:
    """Send events of ten players of two games, of the last two and a half days, in the contract's first version."""
    ids = [str(uuid.uuid4()) for _ in range(events)]
    sender.send_values(ids, [framed(schema_id, _event(number, event_id)) for number, event_id in enumerate(ids)])


def _event(number: int, event_id: str) -> Message:
    name = NAMES[number % 3]
    event = event_class(contract_text(1))(
        event_id=event_id,
        event_name=name,
        game_name=GAMES[number % 2],
        gamer_id=f"player-{number % _PLAYERS}",
        session_id=f"session-{number % 30}",
        event_params={
            "platform": ("ios", "android")[number % 7 % 2],
            "app_version": f"1.{number % 4}",
            "amount": 0.99 if name == "purchase" else None,
        },
    )
    moment = datetime.now(UTC) - timedelta(hours=number % _HOURS)
    event.event_time.FromDatetime(moment)  # type: ignore[attr-defined]
    return event
