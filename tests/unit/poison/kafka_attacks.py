"""Hostile records, schemas, table logs and rule files, and a stream that takes them with the events of another game."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, cast
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.delta.log.codec import Action, encode_entry, entry_path, entry_versions
from gamelake.delta.tables import open_table
from gamelake.layers.bronze import RECORD_SCHEMA, Headers, header_lists
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.reconciliation import reconcile
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import UnknownSchemaError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.quality.checking import check_rules
from gamelake.quality.rules_in_force import WatchedRules
from gamelake.schemas.compiler import ROOT_FILE
from gamelake.schemas.framing import frame_header
from gamelake.schemas.registry import SchemaRegistry, SchemaSource
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decider, Parallelism
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.poison import PoisonAvoidingDecider
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.kafka import consumers as kafka_consumers
from gamelake.streaming.kafka.batch_records import RecordTask, results_of
from gamelake.streaming.kafka.consumers import PartitionRange
from tests.unit.poison.budgets import budget
from tests.unit.quality.rules_and_rows import COLUMNS, a_rule, written
from tests.unit.schemas.protos import varint
from tests.unit.streaming.damaged_logs import DAMAGED_ENTRIES, MISSING
from tests.unit.streaming.streams import TOPIC_ID, StandingTopic, log_batch, stream_in
from tests.unit.streaming.tasks import (
    NOON,
    Json,
    TaskLakehouse,
    an_event,
    compiled,
    framed,
    game_event_schema,
    schema_id,
)

NEIGHBOUR = GameSpec(name="yeti_ski", match=("Yeti Ski",))
TARGETS = tuple(GameSpec(name=f"target_{number}", match=(f"Target {number}",)) for number in range(8))
GAMES = GamesContract(games=(NEIGHBOUR, *TARGETS))
_LOOKUP_SECONDS = 0.008
_NOON_MS = int(NOON.timestamp() * 1000)
_FIRST_HOSTILE, _FIRST_INVENTED = 500, 100_000
_V1 = Path("contracts/proto/v1/game_event.proto").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileRecord:
    """A record as Kafka has it; `milliseconds` since 1970 is whatever its producer said."""

    value: bytes | None
    key: bytes | None = b"p-1"
    headers: Headers | None = None
    milliseconds: int = _NOON_MS
    partition: int = 0


# How another program upgrades a table, so that it takes no more batches.
_PROTOCOLS: Mapping[str, Action] = {
    "a feature": {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}},
    "a protocol beyond all readers": {"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}},
}
DAMAGES = (MISSING, *DAMAGED_ENTRIES, *_PROTOCOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAttack:
    """Hostile input of a stream that also has good events.

    Attributes:
        records: that came to the topic.
        invented: how many records have schema ids that the registry does not know, each another one.
        conflicts: how many games have a column of two types in one batch.
        damage: to the first target's log, one of `DAMAGES`; None for none.
        rules: a file of rules that someone saves while the stream runs; None for none.
    """

    records: Sequence[HostileRecord] = ()
    invented: int = 0
    conflicts: int = 0
    damage: str | None = None
    rules: bytes | None = None


def _with_field(field: str) -> str:
    """The text of version 1 of the event with another field."""
    return _V1.replace("message GameEvent {", f"message GameEvent {{\n  {field}", 1)


# Empty items of two or three bytes and names of one byte: 1,000 items take 8 MB, 1,000 names 250 KB.
_WIDE = (
    _with_field("repeated Item items = 900; repeated Kind kinds = 901;")
    + "message Item {"
    + "".join(f"double f{number} = {number};" for number in range(1, 1_001))
    + "} enum Kind { "
    + "N" * 250
    + " = 0; }"
)
_TEXT_COLUMN, _NUMBER_COLUMN = _with_field("string odd = 900;"), _with_field("int64 odd = 900;")
_NESTED = "".join(f"message N{level} {{ N{level + 1} n = 1; }}\n" for level in range(60)) + "message N60 {}\n"
HOSTILE_SCHEMAS = (
    "",
    "no schema",
    'syntax = "proto3"; message Empty {}',
    'syntax = "proto3"; message Endless { Endless e = 1; }',
    'syntax = "proto3"; import "missing.proto"; message E { string event_id = 1; }',
    'syntax = "proto2"; message E { required string event_id = 1; required int64 event_time = 2; }',
    'syntax = "proto3"; message E { string event_id = 1; string EVENT_ID = 2; string game_name = 3; }',
    'syntax = "proto3"; message E { int64 game_name = 1; bytes event_time = 2; bool event_id = 3; }',
    'syntax = "proto3"; message E { map<string, E> m = 1; oneof o { string event_id = 2; int64 game_name = 3; } }',
    'syntax = "proto3"; ' + _NESTED.replace("message N0 {", "message N0 { string event_id = 2;"),
    'syntax = "proto3"; message E {' + "".join(f"string c{number} = {number};" for number in range(1, 900)) + "}",
    _with_field("int64 kafka_offset = 900;"),
    _with_field("string GAMER_ID = 900;"),
    _with_field("enum Odd { ZERO = 0; } repeated Odd odd = 900;"),
    _WIDE,
    _TEXT_COLUMN,
    _NUMBER_COLUMN,
)
_REGISTERED = {_FIRST_HOSTILE + number: text for number, text in enumerate(HOSTILE_SCHEMAS)}
_WIDE_ID, _TEXT_ID, _NUMBER_ID = sorted(_REGISTERED)[-3:]

_LONG = "x" * 300_000
_NAMES = st.one_of(st.text(max_size=12), st.sampled_from(["", "\0", "..", "a/b", "a=b", "\u202e", "Target 0", _LONG]))
_TIMES = st.sampled_from(
    ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z", "2026-01-01T11:59:00Z", "9999-12-31T23:59:59.999999999Z"]
)


def event_bytes(event: Json) -> bytes:
    return framed(event, game_event_schema(1), schema_id(1))


_EVENTS = st.builds(
    lambda name, game, player, event_time, event_id: event_bytes(
        an_event(eventName=name, gameName=game, gamerId=player, eventTime=event_time, eventId=event_id)
    ),
    _NAMES,
    st.one_of(_NAMES, st.sampled_from([target.match[0] for target in TARGETS])),
    _NAMES,
    _TIMES,
    _NAMES,
)


def expanding_value(event: bytes, items: int, names: int) -> bytes:
    """Add to an event what takes 8,000 bytes for each item and 250 for each name once it is decoded."""
    return frame_header(_WIDE_ID) + event[6:] + b"\xa2\x38\0" * items + b"\xaa\x38" + varint(names) + b"\0" * names


_EXPANDING = st.builds(
    expanding_value,
    _EVENTS,
    # Also many that are within the limit one by one.
    st.sampled_from([0, 1, 500, 30_000]),
    st.sampled_from([0, 1, 10_000, 100_000, 900_000]),
)
_IDS = st.one_of(
    st.sampled_from([*_REGISTERED, *map(schema_id, (1, 2, 3)), 0, 2**31 - 1, 2**31, 2**32 - 1]),
    st.integers(0, 2**32 - 1),
)
_PAYLOADS = st.one_of(
    st.binary(max_size=64),
    # Tags of all wire types, lengths beyond the end, groups that nest, and numbers that do not end.
    st.sampled_from([b"\x0b" * 5_000, b"\x0a\xff\xff\xff\xff\x07", b"\xff" * 40, b"\x0a\x02\xc3\x28", b"\x08" * 99]),
    _EVENTS.map(lambda value: value[6:]),
)
_VALUES = st.one_of(
    st.none(),
    st.binary(max_size=12),
    _EVENTS,
    _EXPANDING,
    st.builds(lambda number, body: b"\0" + number.to_bytes(4, "big") + b"\0" + body, _IDS, _PAYLOADS),
    st.builds(
        lambda number, path, body: b"\0" + number.to_bytes(4, "big") + path + body,
        _IDS,
        st.binary(max_size=6),
        _PAYLOADS,
    ),
)
_MILLISECONDS = st.one_of(
    st.just(_NOON_MS),
    st.sampled_from([-1, 0, -(2**63), 2**63 - 1, 253_402_300_799_999, 253_402_300_800_000, _NOON_MS * 1_000]),
    st.integers(-(2**63), 2**63 - 1),
)
_KEYS = st.one_of(st.just(b"p-1"), st.none(), st.binary(max_size=20), st.just(b"k" * 100_000))
_HEADERS = st.one_of(
    st.none(), st.lists(st.tuples(st.text(max_size=8), st.one_of(st.none(), st.binary(max_size=8))), max_size=3)
)
HOSTILE_RECORDS = st.builds(
    HostileRecord, value=_VALUES, key=_KEYS, headers=_HEADERS, milliseconds=_MILLISECONDS, partition=st.integers(0, 1)
)
HOSTILE_RULES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([
        "rules: # für alle".encode("latin-1"), "rules: []".encode("utf-16"), b"rules: \x07", b"? [a, b]\n: c\n",
        b"5: x",
        b"rules:\n  - name: 2026-02-30\n", b"[" * 5_000, b"rules: &a [*a]\n", b"rules: [{5: x}]", b"rules: 7", b"rules",
    ]),
)  # fmt: skip
KAFKA_ATTACKS = st.builds(
    KafkaAttack,
    records=st.lists(HOSTILE_RECORDS, max_size=12),
    invented=st.sampled_from([0, 0, 0, 0, 1, 40, 4_000]),
    conflicts=st.sampled_from([0, 0, 0, 1, 2, 8]),
    damage=st.sampled_from([None, None, None, *DAMAGES]),
    rules=st.one_of(st.none(), HOSTILE_RULES),
)


@dataclass(frozen=True)
class _Batch:
    """The records of a batch by partition, each with its offset; one task for each partition."""

    partitions: Mapping[int, Sequence[tuple[int, HostileRecord]]]
    spark: Any = None

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        del tasks
        results = (each for records in self._batches for each in results_of(task, iter([records])))
        return [row for each in results for row in each.column("report").to_pylist()]

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        return [as_record_batch(partition, records) for partition, records in self.partitions.items() if records]

    def part(self, ranges: Sequence[PartitionRange]) -> Self:
        wanted = {each.partition: each for each in ranges}
        return replace(
            self,
            partitions={
                partition: [each for each in records if wanted[partition].start <= each[0] < wanted[partition].end]
                for partition, records in self.partitions.items()
                if partition in wanted
            },
        )


def as_record_batch(partition: int, records: Sequence[tuple[int, HostileRecord]]) -> pa.RecordBatch:
    columns = {
        "key": pa.array([each.key for _, each in records], pa.binary()),
        "value": pa.array([each.value for _, each in records], pa.binary()),
        "partition": pa.array([partition] * len(records), pa.int32()),
        "offset": pa.array([offset for offset, _ in records], pa.int64()),
        "timestamp": kafka_consumers.arrival_times(pa.array([each.milliseconds for _, each in records], pa.int64())),
        "headers": header_lists([each.headers for _, each in records]),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


class _Topic(StandingTopic):
    """Holds the records that a driver is to read now."""

    def batch(self, planning: object, planned: object) -> object:
        del planned
        return planning


@contextmanager
def slow_registry() -> Iterator[None]:
    """Run a registry that has the hostile schemas, and takes its time for each id."""

    def source(self: SchemaRegistry, number: int) -> SchemaSource:
        del self
        time.sleep(_LOOKUP_SECONDS)
        if number not in _REGISTERED:
            raise UnknownSchemaError(f"the registry has no schema {number}")
        return SchemaSource(texts={ROOT_FILE: _REGISTERED[number]})

    with patch.object(SchemaRegistry, "source", source):
        yield


class Stream:
    """A stream of all games, whose driver starts again for each batch or stays.

    Args:
        folder: of the rules, and of the lakehouse.
        location: of the lakehouse, if it is not in the folder.
    """

    def __init__(self, folder: Path, location: Location | None = None) -> None:
        self._lakehouse = TaskLakehouse(folder / "lakehouse", GAMES, location)
        self.store: Store = self._lakehouse.store
        self._rules = written(folder / "rules", a_rule("named", "event_name <> 'forbidden'", severity="warn"))
        self._ends = {0: 0, 1: 0}
        self.sent: dict[tuple[int, int], HostileRecord] = {}
        self.good: set[tuple[int, int]] = set()
        self._batch, self._batch_id = _Batch({}), -1
        self.start()

    def start(self) -> None:
        """Start a driver; the last one is gone."""
        lakehouse = self._lakehouse
        stream, self._tables = stream_in(self.store), stream_tables(lakehouse.location)
        finish_last_batch(stream, self._tables)
        self._generation = stream.open(TOPIC_ID)
        known = {game.table: self._tables.schema(game.table) for game in GAMES.games}
        rules = WatchedRules(self._rules, partial(check_rules, columns=COLUMNS, games=("yeti_ski",)))
        decider = PoisonAvoidingDecider(
            Decider(lakehouse.plan(), {name: each for name, each in known.items() if each}, Parallelism(2, 1), rules),
            self.store,
            self._generation,
            lambda: None,
        )
        source = OpenStream(stream, self._generation, self._tables, cast("Any", _Topic()))
        self._driver = FanOut(source, cast("Any", decider), FloodBreaker(FloodLimit(10**9, 1)), Failpoints())

    def save_rules(self, content: bytes) -> None:
        (self._rules / "hostile.yaml").write_bytes(content)

    def remove_rules(self) -> None:
        (self._rules / "hostile.yaml").unlink()

    def damage(self, damage: str) -> None:
        """Damage the log of the first target's table."""
        table = TARGETS[0].table
        last = entry_versions(self.store, table)[-1]
        if damage in _PROTOCOLS:
            self.store.put(entry_path(table, last + 1), encode_entry([_PROTOCOLS[damage]]))
        elif damage == MISSING:
            self.store.delete(entry_path(table, last - 1))
        else:
            self.store.put(entry_path(table, last), DAMAGED_ENTRIES[damage])

    def take(self, records: Sequence[HostileRecord]) -> None:
        """Take a batch of hostile records, with good events of the neighbour before, between and after them."""
        self.send(records)
        self.run()

    def send(self, records: Sequence[HostileRecord]) -> None:
        """Add these records to the topic, and plan the next batch."""
        mixed = [record for each in records for record in (a_good_record(each.partition), each)]
        partitions: dict[int, list[tuple[int, HostileRecord]]] = {0: [], 1: []}
        for each in [*mixed, a_good_record(0), a_good_record(1)]:
            place = each.partition, self._ends[each.partition]
            self.sent[place] = each
            if each.value == _GOOD:
                self.good.add(place)
            partitions[each.partition].append((place[1], each))
            self._ends[each.partition] += 1
        self._batch, self._batch_id = _Batch(partitions), self._batch_id + 1
        self.log_batch()

    def log_batch(self) -> None:
        """Write the planned batch to the checkpoint, as Spark does."""
        log_batch(self._lakehouse.folder, self._generation, self._batch_id, self._ends)

    def run(self) -> None:
        """Have the driver take the planned batch."""
        self._driver(cast("Any", self._batch), self._batch_id)

    def places(self, table: str) -> Counter[tuple[int, int]]:
        """The Kafka partitions and offsets of a table's rows."""
        if not entry_versions(self.store, table):
            return Counter()
        prefix = "" if table in (BRONZE_EVENTS, DEAD_LETTERS) else "kafka_"
        columns = [f"{prefix}partition", f"{prefix}offset"]
        rows = open_table(self.store.location, table).to_pyarrow_table(columns=columns)
        return Counter(zip(*(rows[name].to_pylist() for name in columns), strict=True))


_GOOD = event_bytes(an_event(gameName="Yeti Ski"))


def a_good_record(partition: int) -> HostileRecord:
    return HostileRecord(value=_GOOD, partition=partition)


def records_of(attack: KafkaAttack) -> list[HostileRecord]:
    texts, numbers = compiled(_TEXT_COLUMN), compiled(_NUMBER_COLUMN)
    conflicting = [
        HostileRecord(
            value=framed(an_event(gameName=game.match[0]) | {"odd": odd}, schema, number), partition=partition
        )
        for game in TARGETS[: attack.conflicts]
        for partition, schema, number, odd in ((0, texts, _TEXT_ID, "a"), (1, numbers, _NUMBER_ID, "5"))
    ]
    invented = [HostileRecord(value=frame_header(_FIRST_INVENTED + each)) for each in range(attack.invented)]
    return [*attack.records, *conflicting, *invented]


def check_kafka_attack(attack: KafkaAttack, folder: Path) -> None:
    """Run an attack; the neighbour's events must be rows within the budget, and each record must be accounted for."""
    with slow_registry():
        stream = Stream(folder)
        first = [HostileRecord(value=event_bytes(an_event(gameName=TARGETS[0].match[0])))]
        stream.take(first)
        stream.take(first)
        if attack.damage is not None:
            stream.damage(attack.damage)
        if attack.rules is not None:
            stream.save_rules(attack.rules)
        with budget():
            stream.take(records_of(attack))
        # The next process of the driver finds what the attack has left.
        if attack.rules is not None:
            stream.remove_rules()
        with budget():
            stream.start()
            stream.take([])
    check_accounts(stream, attack.damage is not None)


def check_accounts(stream: Stream, is_damaged: bool = False) -> None:
    """Check that each record is in bronze and in one other table, and that the tables have what the manifests say."""
    once = Counter(stream.sent.keys())
    assert stream.places(BRONZE_EVENTS) == once
    assert stream.places(SILVER_EVENTS) + stream.places(DEAD_LETTERS) + stream.places(QUARANTINE) == once
    assert stream.places(SILVER_EVENTS).keys() >= stream.good
    assert stream.places(NEIGHBOUR.table).keys() >= stream.good
    if stream.places(DEAD_LETTERS):
        letters = open_table(stream.store.location, DEAD_LETTERS).to_pyarrow_table()
        for row in letters.select(["partition", "offset", "value", "reason"]).to_pylist():
            assert row["reason"] in set(DeadLetterReason)
            assert row["value"] == stream.sent[row["partition"], row["offset"]].value
    if not is_damaged:
        assert reconcile(stream.store).problems == []
