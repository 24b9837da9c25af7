"""The simple approach without Spark: consume, parse, group and append with delta-rs, in one process."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from deltalake import write_deltalake
from google.protobuf.message_factory import GetMessageClass

from benchmarks.stopwatch import Stopwatch
from benchmarks.traffic import PARTITIONS, write_contract
from benchmarks.workload import ApproachResult, Workload, check_records, location_of
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.games import load_games
from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.registry import SchemaRegistry
from gamelake.storage.columns import MICROSECONDS_UTC

TABLES = 30
# It is slow, so it gets few records; its rate is reported for this number of records only.
MOST_RECORDS = 100_000
_BATCH = 20_000
_ANSWER_SECONDS = 10.0
# After the magic byte; the message index [0] is the byte between id and body.
_ID, _BODY = slice(1, 5), 6
_SECONDS_A_DAY = 86_400

Row: TypeAlias = dict[str, object]

_COLUMNS = pa.schema(
    [
        pa.field("event_time", MICROSECONDS_UTC),
        pa.field("event_name", pa.string()),
        pa.field("game_name", pa.string()),
        pa.field("gamer_id", pa.string()),
        pa.field("session_id", pa.string()),
        pa.field("platform", pa.string()),
        pa.field("app_version", pa.string()),
        pa.field("amount", pa.float64()),
        pa.field("ingest_time", MICROSECONDS_UTC),
        pa.field("event_id", pa.string()),
        pa.field(EVENT_DATE, pa.date32()),
    ]
)


def consume_and_append(workload: Workload) -> ApproachResult:
    """Append a bounded number of records, from the topic's beginning, to the game tables."""
    wanted = min(workload.records, MOST_RECORDS)
    contract = load_games(write_contract(workload.directory, TABLES))
    table_of = {name: game.table for game in contract.games for name in game.match}
    parser = Parser(workload.registry_url)
    moved = 0
    watch = Stopwatch.start(workload.kafka_pid)
    for values in _batches(workload, wanted):
        rows_of: defaultdict[str, list[Row]] = defaultdict(list)
        for value in values:
            row = parser.row(value)
            rows_of[table_of[str(row["game_name"])]].append(row)
        for table, rows in rows_of.items():
            uri = location_of(workload).child(table)
            write_deltalake(uri, pa.Table.from_pylist(rows, _COLUMNS), mode="append", partition_by=[EVENT_DATE])
        moved += sum(map(len, rows_of.values()))
    lap = watch.stop()
    check_records("the Python loop", moved, wanted)
    return ApproachResult(records=moved, lap=lap)


def _batches(workload: Workload, wanted: int) -> Iterator[list[bytes]]:
    """Batches of record values, `wanted` in total."""
    consumer = Consumer(
        {"bootstrap.servers": workload.bootstrap_servers, "group.id": "benchmark", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(workload.topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    while wanted:
        messages = consumer.consume(min(_BATCH, wanted), _ANSWER_SECONDS)
        if not messages:
            break
        wanted -= len(messages)
        yield [value for message in messages if (value := message.value()) is not None]
    consumer.close()


class Parser:
    """Parses framed values with the protobuf package, by the schemas of the registry."""

    def __init__(self, registry_url: str) -> None:
        self._registry = SchemaRegistry(registry_url)
        # Classes made at run time, of which a type checker knows nothing.
        self._classes: dict[int, Any] = {}

    def row(self, value: bytes) -> Row:
        """An event as the row of a table."""
        return _row(self._class_of(int.from_bytes(value[_ID], "big")).FromString(value[_BODY:]))

    def _class_of(self, schema_id: int) -> Any:  # noqa: ANN401 # see __init__
        if schema_id not in self._classes:
            source = self._registry.source(schema_id)
            self._classes[schema_id] = GetMessageClass(message_at(compile_sources(source.texts, source.root), (0,)))
        return self._classes[schema_id]


def _row(event: Any) -> Row:  # noqa: ANN401 # see Parser
    params = event.event_params
    return {
        "event_time": event.event_time.ToMicroseconds(),
        "event_name": event.event_name,
        "game_name": event.game_name,
        "gamer_id": event.gamer_id,
        "session_id": event.session_id,
        "platform": params.platform,
        "app_version": params.app_version,
        "amount": params.amount if params.HasField("amount") else None,
        "ingest_time": event.ingest_time.ToMicroseconds(),
        "event_id": event.event_id,
        EVENT_DATE: event.event_time.seconds // _SECONDS_A_DAY,
    }
