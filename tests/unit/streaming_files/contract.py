"""The newest contract, for tests of files."""

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa

from gamelake.schemas.decoder import MessageDecoder
from gamelake.schemas.event_schemas import load_schema
from gamelake.schemas.framing import HEADER_BYTES, frame_header
from gamelake.streaming.files.formats.events import Framer

SCHEMA_ID = 7
MESSAGE = load_schema(Path(__file__).parents[3] / "contracts/proto/v4", 4).message
FRAMER = Framer(MESSAGE, SCHEMA_ID)
DECODER = MessageDecoder(MESSAGE)

# An event that has every field.
WHOLE: dict[str, Any] = {
    "event_id": "0d6b1f1e-4b0e-4c3a-9d3c-0f2f5a3c7b11",
    "event_name": "purchase",
    "event_time": "2026-11-22T10:00:00.123456+02:00",
    "ingest_time": "2026-11-22T08:00:01Z",
    "game_name": "Archery",
    "gamer_id": "p" * 32,
    "session_id": "s",
    "event_params": {
        "game_keyword": "archery",
        "app_name": "Archery",
        "score_adjustment": -3,
        "platform": "ios",
        "app_version": "1.2.3",
        "device_id": "d",
        "client_event_time": "2026-11-22T08:00:00Z",
        "amount": 1.25,
        "level": 7,
        "country": "DE",
    },
    "purchase": {"product_id": "gems", "currency": "USD", "price_micros": 2**53 + 1, "quantity": 2},
    "experiment_ids": ["a", "b"],
    "attributes": {"mode": "härd", "k": ""},
    "connection_type": "CONNECTION_TYPE_WIFI",
    "error": {"code": "E", "fatal": True, "response_ms": 12},
}


def line(**fields: object) -> bytes:
    """An event in JSON: its id, its time, its game, and what a test gives it."""
    event = {"event_id": str(uuid.uuid4()), "event_time": "2026-11-22T10:00:00Z", "game_name": "Archery"}
    return json.dumps({**event, **fields}).encode()


def decoded(values: pa.BinaryArray) -> list[dict[str, Any]]:
    """What framed events say, each of which must be one."""
    bodies = []
    for value in values.to_pylist():
        assert value.startswith(frame_header(SCHEMA_ID))
        bodies.append(value[HEADER_BYTES:])
    positions, columns = DECODER.decode(pa.array(bodies, pa.binary()))
    assert len(positions) == len(bodies)
    return [plain(row) for row in columns.to_pylist()]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the order that a map's entries stand in."""
    return {**row, "attributes": dict(row["attributes"])}
