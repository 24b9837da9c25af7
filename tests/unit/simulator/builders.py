"""Short runs of the simulator, with a clock that stands still."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.event_schemas import EventSchema, load_schemas
from gamelake.schemas.framing import HEADER_BYTES
from tools.simulator.encoding import KafkaRecordEncoder
from tools.simulator.spec import NEWEST_VERSION, NO_BAD_EVENTS, Shares, TrafficSpec
from tools.simulator.traffic import TrafficBatch, TrafficGenerator

# Its class is made while the tests run, one for each version, so its fields are unknown to the type checker.
Event: TypeAlias = Any

NOW_US = 1_767_268_800_000_000  # 2026-01-01, noon
GAMES = ("Archery Duel", "Bingo Harbor", "Kart Rumble")
FIRST_SCHEMA_ID = 41

_SPEC = TrafficSpec(game_names=GAMES, events=6_000, players=2_000, shares=NO_BAD_EVENTS)


@dataclass(frozen=True)
class Sent:
    """One record, and the event in it."""

    key: str
    value: bytes
    version: int
    event: Event


@cache
def schemas() -> tuple[EventSchema, ...]:
    return load_schemas(Path("contracts"), NEWEST_VERSION)


@cache
def encoders(versions: int = NEWEST_VERSION) -> tuple[KafkaRecordEncoder, ...]:
    return tuple(KafkaRecordEncoder(schema, FIRST_SCHEMA_ID + at) for at, schema in enumerate(schemas()[:versions]))


@cache
def _message_classes() -> dict[int, type[Message]]:
    return {schema.version: GetMessageClass(schema.message) for schema in schemas()}


def a_spec(**changes: object) -> TrafficSpec:
    return dataclasses.replace(_SPEC, **changes)  # type: ignore[arg-type] # checked by the spec itself


def a_run(*, now_us: int = NOW_US, **changes: object) -> TrafficGenerator:
    spec = a_spec(**changes)
    return TrafficGenerator(spec, encoders(spec.versions), clock=lambda: now_us)


def records_of(batch: TrafficBatch) -> list[tuple[str, bytes]]:
    return list(zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True))


def records(traffic: TrafficGenerator) -> list[tuple[str, bytes]]:
    return [record for batch in traffic.batches() for record in records_of(batch)]


def decode(value: bytes) -> tuple[int, Event]:
    version = int.from_bytes(value[1:5], "big") - FIRST_SCHEMA_ID + 1
    return version, _message_classes()[version].FromString(value[HEADER_BYTES:])


def events(traffic: TrafficGenerator) -> Iterator[Sent]:
    """Decode every record with the protobuf package, which knows nothing of how they were made."""
    for key, value in records(traffic):
        version, event = decode(value)
        yield Sent(key, value, version, event)


@cache
def good_events() -> tuple[Sent, ...]:
    """Give the events of a run in which nothing is bad, decoded once for all tests."""
    return tuple(events(a_run()))


def only(**shares: float) -> Shares:
    return dataclasses.replace(NO_BAD_EVENTS, **shares)
