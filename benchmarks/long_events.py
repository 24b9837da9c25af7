"""A topic with events of one kilobyte: the events of one game, with long attributes of five kinds.

The bytes are neither random nor repeated: a text of moves with the frequencies of a written language, a state as JSON
with random numbers, a random trace id, and a device and settings out of short lists. Zstandard at level 1 leaves 45 %.
"""

from functools import cache

import numpy as np
import pyarrow as pa

from benchmarks.traffic import CONTRACTS, GAME_NAMES, PARTITIONS, VERSIONS, Filled, send_all
from gamelake.model.arrays import Bytes
from gamelake.schemas.event_schemas import EventSchema, load_schemas, register
from tools.embedded.kafka import create_topic
from tools.simulator.columns import EventContext
from tools.simulator.encoding import KafkaRecordEncoder
from tools.simulator.spec import NO_BAD_EVENTS, TrafficSpec
from tools.simulator.text import fixed_width_text, hex_text
from tools.simulator.traffic import TrafficGenerator

# Together with the event's other fields about 1,024 bytes.
_MOVES, _DIGITS, _TRACE_BYTES = 537, 6, 16
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)
_COUNTERS = ("coins", "gems", "lives", "stars", "boosts", "streak")
_DEVICES, _SETTINGS, _SETTINGS_BYTES = 200, 60, 110
_ATTRIBUTES = "attributes"


def fill_with_long_events(bootstrap_servers: str, registry_url: str, topic: str, events: int) -> Filled:
    """Create a topic and fill it with events of one game in the newest version, without defects.

    Raises:
        DeliveryError: Kafka did not confirm every record.
    """
    create_topic(bootstrap_servers, topic, PARTITIONS)
    schemas = load_schemas(CONTRACTS, VERSIONS)
    newest = register(schemas, registry_url=registry_url, topic=topic)[-1]
    spec = TrafficSpec(game_names=GAME_NAMES[:1], versions=1, events=events, shares=NO_BAD_EVENTS)
    return send_all(bootstrap_servers, topic, TrafficGenerator(spec, [LongEventEncoder(schemas[-1], newest)]))


class LongEventEncoder(KafkaRecordEncoder):
    """Encodes events of a schema version with long attributes; all events of the run are of this version."""

    def __init__(self, schema: EventSchema, schema_id: int) -> None:
        super().__init__(schema, schema_id)
        self.version = 1
        self._random = np.random.default_rng(7)

    def columns(self, context: EventContext) -> pa.RecordBatch:
        """The columns to encode, one row per event, in the order of the context."""
        rows = super().columns(context)
        place = rows.schema.get_field_index(_ATTRIBUTES)
        attributes = long_attributes(len(rows), self._random).cast(rows.schema.field(place).type)
        return rows.set_column(place, rows.schema.field(place), attributes)


def long_attributes(count: int, random: np.random.Generator) -> pa.MapArray:
    """Maps of five texts each, by random numbers."""
    devices, settings = _lists()
    texts = {
        "moves": fixed_width_text(_moves(count, random)),
        "state": fixed_width_text(_states(count, random)),
        "trace_id": hex_text("", _random_bytes(count, random), 2 * _TRACE_BYTES),
        "device": devices.take(pa.array(random.integers(0, _DEVICES, count))),
        "settings": settings.take(pa.array(random.integers(0, _SETTINGS, count))),
    }
    order = (np.arange(count)[:, None] + count * np.arange(len(texts))).ravel()
    keys = pa.array(list(texts)).take(pa.array(np.tile(np.arange(len(texts)), count)))
    offsets = pa.array(np.arange(0, (count + 1) * len(texts), len(texts), dtype=np.int32))
    return pa.MapArray.from_arrays(offsets, keys, pa.concat_arrays(list(texts.values())).take(pa.array(order)))


def _moves(count: int, random: np.random.Generator) -> Bytes:
    """Characters of which the n-th is as frequent as 1 / n: 4.3 bits of information in each."""
    weights = 1 / np.arange(1, len(_ALPHABET) + 1)
    return _ALPHABET[np.searchsorted(np.cumsum(weights / weights.sum()), random.random((count, _MOVES)))]


def _states(count: int, random: np.random.Generator) -> Bytes:
    """JSON objects with a random number of six digits for each counter."""
    pattern = "{" + ",".join(f'"{name}":1{"#" * (_DIGITS - 1)}' for name in _COUNTERS) + "}"
    text = np.tile(np.frombuffer(pattern.encode(), np.uint8), (count, 1))
    free = np.flatnonzero(text[0] == ord("#")) if count else np.zeros(0, np.int64)
    text[:, free] = random.integers(ord("0"), ord("9") + 1, (count, len(free)), np.uint8)
    return text


def _random_bytes(count: int, random: np.random.Generator) -> Bytes:
    return np.frombuffer(random.bytes(count * _TRACE_BYTES), np.uint8).reshape(count, _TRACE_BYTES)


@cache
def _lists() -> tuple[pa.StringArray, pa.StringArray]:
    """Devices and settings, the same in each run."""
    random = np.random.default_rng(1)
    devices = [f"model {number:03d}, system {number % 7 + 9}.{number % 4}" for number in range(_DEVICES)]
    rows = _ALPHABET[random.integers(0, len(_ALPHABET), (_SETTINGS, _SETTINGS_BYTES))]
    return pa.array(devices), fixed_width_text(rows)
