"""Events as a game sends them, and the contract that validates them."""

import json
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from google.protobuf.descriptor import Descriptor

from gamelake.contract.games import GamesContract, load_games
from gamelake.schemas.event_schemas import EventSchema, load_schema, load_schemas
from services.gateway.events.columns import ColumnarEncoder
from services.gateway.events.preparation import ColumnarPreparer, RecordEncoder, RowPreparer
from services.gateway.events.validation import JSON, EventBatch, EventValidator
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import PLAYER_BYTES, PlayerCache, Pseudonymizer

CONTRACTS = Path(__file__).parents[3] / "contracts"
GAME = "archery_duel"
SCHEMA_ID = 7
MAX_EVENTS = 1_000


@cache
def schema() -> EventSchema:
    """The newest version of the event."""
    return load_schemas(CONTRACTS, 4)[-1]


@cache
def submitted() -> Descriptor:
    """The event as games send it."""
    return load_schema(CONTRACTS / "submitted" / "v4", 4).message


@cache
def contract() -> GamesContract:
    return load_games(CONTRACTS / "games.yaml")


@cache
def pseudonymizer() -> Pseudonymizer:
    """Takes the personal fields of the newest contract out of events."""
    return Pseudonymizer(submitted(), personal_fields(submitted()))


@cache
def validator() -> EventValidator:
    """The validator of the newest contract."""
    return EventValidator(contract(), submitted(), pseudonymizer().extractor)


def an_event(**fields: object) -> dict[str, object]:
    return {
        "event_id": str(uuid.uuid4()),
        "event_name": "level_completed",
        "event_time": datetime.now(UTC).isoformat(),
        "gamer_id": "player-1",
    } | fields


def batch_of(body: bytes, content_type: str = JSON, game: str = GAME, arrived: datetime | None = None) -> EventBatch:
    """A body as the gateway splits it; it arrives now by default."""
    body_format = validator().body_format(content_type)
    raw_events = body_format.split(body, MAX_EVENTS)
    return EventBatch(validator().game(game), body_format, raw_events, len(body), arrived or datetime.now(UTC))


def cache_of(players: int) -> PlayerCache:
    """Create a cache for `players` players with short names, and no personal data."""
    return PlayerCache(players * (PLAYER_BYTES + 100))


def row_preparer(cache: PlayerCache) -> RowPreparer:
    """Prepares batches event by event."""
    return RowPreparer(validator(), cache, pseudonymizer(), RecordEncoder(SCHEMA_ID))


def columnar_preparer(cache: PlayerCache) -> ColumnarPreparer:
    encoder = ColumnarEncoder(schema().message, SCHEMA_ID, pseudonymizer().fields.vault)
    return ColumnarPreparer(contract(), submitted(), cache, pseudonymizer(), encoder)


def body_of(*events: object) -> bytes:
    return json.dumps({"events": events}).encode()
