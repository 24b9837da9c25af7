"""The silver tables' rows: an event's fields as columns, in the order in which people filter by them."""

import pyarrow as pa

from gamelake.model.errors import IncompatibleSchemaError
from gamelake.storage.columns import MICROSECONDS_UTC, merged

EVENT_DATE = "event_date"
# The parameters of an event stand beside its other columns: SQL without dots, statistics in every engine.
SPREAD = "event_params"

COMMON_SCHEMA = pa.schema(
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
        pa.field("kafka_partition", pa.int64()),
        pa.field("kafka_offset", pa.int64()),
        pa.field("event_id", pa.string()),
    ]
)
REQUIRED = ("event_time", "game_name")
# Values that hardly repeat: a dictionary of them would be as long as the column.
UNIQUE_COLUMNS = frozenset({"event_id"})
_LAST = ("kafka_partition", "kafka_offset", "event_id")


def conform(event: pa.RecordBatch, partitions: pa.Array, offsets: pa.Array) -> pa.RecordBatch:
    """Decoded events as silver rows, with the coordinates of the records (both int64) they came in.

    Raises:
        IncompatibleSchemaError: the message lacks a column that every event must have, or gives a common column
            another type; holds for all events of the message type.
    """
    columns = _spread(event)
    # Spark and Trino take Event_Date and event_date for one column.
    if taken := {"kafka_partition", "kafka_offset", EVENT_DATE} & {name.lower() for name in columns}:
        raise IncompatibleSchemaError(f"the message has a field named {sorted(taken)[0]}, which is the platform's own")
    columns |= {"kafka_partition": partitions, "kafka_offset": offsets}
    names = [name for name in COMMON_SCHEMA.names if name in columns and name not in _LAST]
    names += [name for name in columns if name not in names and name not in _LAST]
    names += [name for name in _LAST if name in columns]
    rows = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    _check(rows.schema)
    return rows


def _spread(event: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = dict(zip(event.schema.names, event.columns, strict=True))
    params = columns.pop(SPREAD, None)
    if params is None or not pa.types.is_struct(params.type):
        return columns if params is None else columns | {SPREAD: params}
    children = dict(zip([field.name for field in params.type], params.flatten(), strict=True))
    taken = columns.keys() & children.keys()
    spread = {f"{SPREAD}_{name}" if name in taken else name: child for name, child in children.items()}
    if twice := columns.keys() & spread.keys():
        raise IncompatibleSchemaError(f"the message has two fields for the column {sorted(twice)[0]}")
    return columns | spread


def _check(schema: pa.Schema) -> None:
    for name in REQUIRED:
        if schema.get_field_index(name) < 0:
            raise IncompatibleSchemaError(f"the message has no {name}, without which it can't be placed")
    merged(COMMON_SCHEMA, pa.schema([field for field in schema if field.name in COMMON_SCHEMA.names]))


def common_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of `silver/events`; null where the game's events have none."""
    arrays = [
        rows.column(field.name) if rows.schema.get_field_index(field.name) >= 0 else pa.nulls(len(rows), field.type)
        for field in COMMON_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=COMMON_SCHEMA)
