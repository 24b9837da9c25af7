"""Events as a game sends them, and the contract that validates them."""

import json
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from google.protobuf.descriptor import Descriptor

from gamelake.model.games import GamesContract, load_games
from gamelake.schemas.event_schemas import EventSchema, load_schema, load_schemas
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import Pseudonymizer
from services.gateway.validation import EventValidator

CONTRACTS = Path(__file__).parents[3] / "contracts"
GAME = "archery_duel"
SCHEMA_ID = 7


@cache
def schema() -> EventSchema:
    """The newest version of the event."""
    return load_schemas(CONTRACTS, 3)[-1]


@cache
def submitted() -> Descriptor:
    """The event as games send it."""
    return load_schema(CONTRACTS / "submitted" / "v3", 3).message


@cache
def contract() -> GamesContract:
    """The games."""
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
    """A valid event of now."""
    return {
        "event_id": str(uuid.uuid4()),
        "event_name": "level_completed",
        "event_time": datetime.now(UTC).isoformat(),
        "gamer_id": "player-1",
    } | fields


def body_of(*events: object) -> bytes:
    """The events as a JSON body."""
    return json.dumps({"events": events}).encode()
