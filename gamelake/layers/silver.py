"""Silver: events with their fields as columns, those that queries filter by first."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.columns import MICROSECONDS_UTC, merged
from gamelake.model.arrays import Ints
from gamelake.model.errors import IncompatibleSchemaError

EVENT_DATE = "event_date"
# The fields of this struct become columns of their own: SQL without dots, statistics in every engine.
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
        pa.field("country", pa.string()),
        pa.field("currency", pa.string()),
        pa.field("price_micros", pa.int64()),
        pa.field("order_id", pa.string()),
        pa.field("store", pa.string()),
        pa.field("product_id", pa.string()),
        pa.field("paid_until", MICROSECONDS_UTC),
        pa.field("install_source", pa.string()),
        pa.field("ingest_time", MICROSECONDS_UTC),
        pa.field("kafka_partition", pa.int64()),
        pa.field("kafka_offset", pa.int64()),
        pa.field("event_id", pa.string()),
    ]
)
REQUIRED = ("event_time", "game_name")
# What messages have in these fields of structs, the first of them that is set, becomes a common column.
NESTED_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "currency": (("purchase", "currency"), ("ad", "currency")),
    "price_micros": (("purchase", "price_micros"), ("ad", "revenue_micros")),
    "order_id": (("purchase", "order_id"),),
    "store": (("purchase", "store"),),
    "product_id": (("purchase", "product_id"),),
    "paid_until": (("purchase", "paid_until"),),
    "install_source": (("install", "source"),),
}
# A message may have a field of this name with another meaning: then it is not the common column.
_OPTIONAL = frozenset({"country", *NESTED_COLUMNS})
# In Protobuf a text that was not sent is empty. An empty title is a reason for a dead letter, and stays.
_EMPTY_IS_NULL = frozenset(field.name for field in COMMON_SCHEMA if pa.types.is_string(field.type)) - {"game_name"}
# Values that hardly repeat: their dictionary would be as long as the column.
UNIQUE_COLUMNS = frozenset({"event_id"})
_LAST = ("kafka_partition", "kafka_offset", "event_id")
# Kafka cuts its timestamps to milliseconds.
_KAFKA_PRECISION = 999


def conform(event: pa.RecordBatch, partitions: pa.Array, offsets: pa.Array) -> pa.RecordBatch:
    """Convert decoded events to silver rows.

    Args:
        event: decoded events of one message type, one column for each field, in Delta types.
        partitions: int64, the Kafka partition of each event's record.
        offsets: int64, the Kafka offset of each event's record.

    Returns:
        One row for each event, in order: the columns of `COMMON_SCHEMA` that the message has, with null for an empty
        text, then its other fields (fields of `event_params` as columns of their own), then kafka_partition,
        kafka_offset and event_id.

    Raises:
        IncompatibleSchemaError: the message lacks a column that every event must have, or gives a common column
            another type, and with it all events of the message type.
    """
    columns = _spread(event)
    # To Spark and Trino, Event_Date and event_date are one column.
    if taken := {"kafka_partition", "kafka_offset", EVENT_DATE} & {name.lower() for name in columns}:
        raise IncompatibleSchemaError(
            f"the message has a field named {sorted(taken)[0]}, which is a column of the platform"
        )
    columns |= {"kafka_partition": partitions, "kafka_offset": offsets}
    columns |= {name: _null_if_empty(columns[name]) for name in _EMPTY_IS_NULL & columns.keys()}
    names = [name for name in COMMON_SCHEMA.names if name in columns and name not in _LAST]
    names += [name for name in columns if name not in names and name not in _LAST]
    names += [name for name in _LAST if name in columns]
    rows = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    _check(rows.schema)
    return rows


def _null_if_empty(texts: pa.Array) -> pa.Array:
    """Return the same texts with null for an empty one.

    An empty session or platform would be one that many events share.
    """
    if not pa.types.is_string(texts.type):
        return texts
    is_empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(is_empty, pa.scalar(None, texts.type), texts) if pc.any(is_empty).as_py() else texts


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
    names = frozenset(COMMON_SCHEMA.names) - _OPTIONAL
    merged(COMMON_SCHEMA, pa.schema([field for field in schema if field.name in names]))


def with_ingest_times(rows: pa.RecordBatch, arrived: Ints, oldest: int) -> pa.RecordBatch:
    """Return the same rows with a plausible `ingest_time` in each.

    A sender's value is kept unless it is null, after the arrival, or absurdly long before it; the arrival replaces it.

    Args:
        rows: rows of silver.
        arrived: int64, when each row's record arrived, in microseconds since 1970.
        oldest: how long before its arrival a row's ingest time may be, in microseconds.
    """
    place = rows.schema.get_field_index("ingest_time")
    if place < 0:
        earlier = COMMON_SCHEMA.names[: COMMON_SCHEMA.names.index("ingest_time")]
        place = sum(name in rows.schema.names for name in earlier)
        filled = pa.array(arrived).view(MICROSECONDS_UTC)
        return rows.add_column(place, pa.field("ingest_time", MICROSECONDS_UTC), filled)
    given = rows.column(place)
    # Null becomes a time that is too old.
    microseconds = pc.fill_null(given.cast(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    implausible = (microseconds > arrived + _KAFKA_PRECISION) | (microseconds < arrived - oldest)
    if not implausible.any():
        return rows
    filled = pa.array(np.where(implausible, arrived, microseconds)).view(MICROSECONDS_UTC)
    return rows.set_column(place, rows.schema.field(place), filled)


def common_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a game's table in the columns of `COMMON_SCHEMA`, null where `rows` has none."""
    return pa.RecordBatch.from_arrays([_common(rows, field) for field in COMMON_SCHEMA], schema=COMMON_SCHEMA)


def _common(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    place = rows.schema.get_field_index(field.name)
    if place >= 0 and (field.name not in _OPTIONAL or rows.schema.field(place).type == field.type):
        return rows.column(place)
    found = [each for path in NESTED_COLUMNS.get(field.name, ()) if (each := _nested(rows, *path, field.type))]
    if not found:
        return pa.nulls(len(rows), field.type)
    return _null_if_empty(found[0] if len(found) == 1 else pc.coalesce(*found))


def _nested(rows: pa.RecordBatch, struct: str, name: str, kind: pa.DataType) -> pa.Array | None:
    """Return the field of a struct, null where the struct is; None if the rows have no such field of the type."""
    place = rows.schema.get_field_index(struct)
    if place < 0 or not pa.types.is_struct(rows.schema.field(place).type):
        return None
    child = rows.schema.field(place).type.get_field_index(name)
    if child < 0 or rows.schema.field(place).type.field(child).type != kind:
        return None
    return pc.struct_field(rows.column(place), [child])
