"""Conversion of Arrow types to Delta types, and merging of schemas.

Integers become int64 and floats float64. So if a later schema version widens a field, the table does not change, and
needs no table feature that one of the four engines lacks. uint64 becomes decimal(20, 0); durations and times of day
become int64 microseconds; timestamps become microseconds in UTC.
"""

from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema

from gamelake.model.errors import IncompatibleSchemaError

UINT64_AS_DECIMAL = pa.decimal128(20, 0)
MICROSECONDS_UTC = pa.timestamp("us", "UTC")
# delta-rs can't read deeper JSON. The schema, its list of fields, a field and its metadata take four levels.
_JSON_LEVELS, _TOP_LEVELS = 127, 4


def delta_type(arrow: pa.DataType) -> pa.DataType:
    """Return a Delta table's type for an Arrow type; every part of it is nullable."""
    if pa.types.is_struct(arrow):
        return pa.struct([delta_field(arrow.field(i)) for i in range(arrow.num_fields) if _has_columns(arrow.field(i))])
    if pa.types.is_map(arrow):
        return pa.map_(delta_type(arrow.key_type), delta_type(arrow.item_type))
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", delta_type(arrow.value_type)))
    return _delta_scalar(arrow)


def _delta_scalar(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_uint64(arrow):
        return UINT64_AS_DECIMAL
    if pa.types.is_integer(arrow) or pa.types.is_duration(arrow) or pa.types.is_time(arrow):
        return pa.int64()
    if pa.types.is_floating(arrow):
        return pa.float64()
    if pa.types.is_timestamp(arrow):
        return MICROSECONDS_UTC
    return arrow


def delta_field(field: pa.Field) -> pa.Field:
    """Return a field of a Delta table for an Arrow field; it is nullable even if the Arrow field is not."""
    return pa.field(field.name, delta_type(field.type))


def _has_columns(field: pa.Field) -> bool:
    """Return False for a struct without fields, such as google.protobuf.Empty, and for a list or map of such structs.

    Parquet can't store them.
    """
    arrow = field.type
    if pa.types.is_struct(arrow):
        return any(_has_columns(arrow.field(i)) for i in range(arrow.num_fields))
    if pa.types.is_list(arrow):
        return _has_columns(arrow.value_field)
    return not pa.types.is_map(arrow) or _has_columns(arrow.item_field)


def without_views(arrow: pa.DataType) -> pa.DataType:
    """Return the type with string and binary in place of views, nested ones included.

    delta-rs reads columns as views, which few Arrow kernels accept.
    """
    if pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_binary_view(arrow):
        return pa.binary()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(without_views(field.type)) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(without_views(arrow.key_type), without_views(arrow.item_type))
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(without_views(arrow.value_type)))
    return arrow


def as_delta(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast the columns of a batch to Delta types.

    Args:
        batch: columns of any types.

    Returns:
        The same rows in the same order, with each column cast to its `delta_type`. Columns that Parquet can't store are
        omitted: structs without fields, and lists or maps of them.
    """
    kept = [field for field in batch.schema if _has_columns(field)]
    fields = [delta_field(field) for field in kept]
    arrays = [_cast(batch.column(new.name), new.type) for new in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        children = [_cast(array.field(field.name), field.type) for field in target]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=_nulls(array))
    if pa.types.is_map(target):
        items = _cast(array.items, target.item_type)
        return pa.MapArray.from_arrays(
            array.offsets, _cast(array.keys, target.key_type), items, target, mask=_nulls(array)
        )
    if pa.types.is_list(target):
        return pa.ListArray.from_arrays(
            array.offsets, _cast(array.values, target.value_type), target, mask=_nulls(array)
        )
    if pa.types.is_time(array.type):
        array = array.cast(pa.time64("us"))
    if pa.types.is_duration(array.type):
        array = array.cast(pa.duration("us"))
    return array.cast(target)


def _nulls(array: pa.Array) -> pa.BooleanArray | None:
    return pc.is_null(array) if array.null_count else None


def merged(table: pa.Schema, incoming: pa.Schema) -> pa.Schema:
    """Return the table's schema with the fields that `incoming` adds.

    Args:
        table: the table's columns, in Delta types.
        incoming: columns of any types; they are converted with `delta_type`.

    Returns:
        The fields of `table` in their order, then new ones, on the top level and in each struct. If there are no new
        fields, it is the object `table` itself.

    Raises:
        IncompatibleSchemaError: a column would have to change its type, its name differs from another one by case only,
            or it is nested too deeply for a table's log.

    Example:
        >>> merged(pa.schema({"level": pa.int64()}), pa.schema({"country": pa.string()})).names
        ['level', 'country']
    """
    grown = _grown(table, incoming)
    return table if grown is None else grown


def conflicts(table: pa.Schema, incoming: pa.Schema) -> bool:
    """Return True if `merged` would raise an error for these columns."""
    try:
        merged(table, incoming)
    except IncompatibleSchemaError:
        return True
    return False


def merged_or_first(table: pa.Schema, incoming: pa.Schema) -> pa.Schema:
    """Return the schema of `merged`, or `table` itself if the columns conflict."""
    return table if conflicts(table, incoming) else merged(table, incoming)


# In every batch, thirty tables of one schema have the same arguments.
@lru_cache(maxsize=4096)
def _grown(table: pa.Schema, incoming: pa.Schema) -> pa.Schema | None:
    fields = _merged_fields(list(table), list(incoming), "")
    if fields is None:
        return None
    for field in incoming:
        if _TOP_LEVELS + _json_levels(field.type) > _JSON_LEVELS:
            raise IncompatibleSchemaError(
                f"column {field.name} is nested too deeply for the log of a Delta table; flatten its message"
            )
    return pa.schema(fields)


def _json_levels(arrow: pa.DataType) -> int:
    """Return the levels of JSON that a type takes in a log: a struct's object, its list of fields, and each field."""
    if pa.types.is_struct(arrow):
        return 3 + max((_json_levels(field.type) for field in arrow), default=0)
    if pa.types.is_list(arrow):
        return 1 + _json_levels(arrow.value_type)
    return 1 + _json_levels(arrow.item_type) if pa.types.is_map(arrow) else 0


def _merged_fields(have: list[pa.Field], new: Iterable[pa.Field], path: str) -> list[pa.Field] | None:
    """Return the union of two lists of fields, None if it is the same as the first list."""
    result = list(have)
    # To Spark and Trino, userId and userid are one column.
    places = {field.name.lower(): place for place, field in enumerate(have)}
    changed = False
    for field in new:
        place = places.get(field.name.lower())
        if place is None:
            places[field.name.lower()] = len(result)
            # Merging with an empty struct also compares the names inside the field with each other.
            added = _merged_type(_without_fields(field.type), field.type, f"{path}{field.name}")
            result.append(pa.field(field.name, delta_type(added or field.type)))
            changed = True
            continue
        if result[place].name != field.name:
            raise IncompatibleSchemaError(f"column {path}{field.name} differs from {result[place].name} by case only")
        merged_type = _merged_type(result[place].type, field.type, f"{path}{field.name}")
        if merged_type is not None:
            result[place] = pa.field(field.name, merged_type)
            changed = True
    return result if changed else None


def _merged_type(have: pa.DataType, new: pa.DataType, path: str) -> pa.DataType | None:
    if pa.types.is_struct(have) and pa.types.is_struct(new):
        fields = _merged_fields(list(have), list(new), f"{path}.")
        return None if fields is None else pa.struct(fields)
    if pa.types.is_list(have) and pa.types.is_list(new):
        element = _merged_type(have.value_type, new.value_type, f"{path}.element")
        return None if element is None else pa.list_(pa.field("element", element))
    if pa.types.is_map(have) and pa.types.is_map(new):
        _merged_type(have.key_type, new.key_type, f"{path}.key")
        item = _merged_type(have.item_type, new.item_type, f"{path}.value")
        return None if item is None else pa.map_(have.key_type, item)
    if not delta_type(have).equals(delta_type(new)):
        raise IncompatibleSchemaError(f"column {path} is {have} in the table and {new} in the record")
    return None


def _without_fields(arrow: pa.DataType) -> pa.DataType:
    """Return the type with empty structs in place of its structs."""
    if pa.types.is_struct(arrow):
        return pa.struct([])
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _without_fields(arrow.value_type)))
    return pa.map_(arrow.key_type, _without_fields(arrow.item_type)) if pa.types.is_map(arrow) else arrow


# It is called for each table of each batch, and by each task for each message type.
@lru_cache(maxsize=1024)
def delta_schema_json(schema: pa.Schema) -> str:
    """Encode a schema as the JSON of a Delta log.

    Args:
        schema: columns in Delta types (`gamelake.delta.columns`).

    Raises:
        IncompatibleSchemaError: delta-rs writes the JSON but can't read it, so no table may have it.

    Example:
        >>> delta_schema_json(pa.schema({"level": pa.int64()}))
        '{"type":"struct","fields":[{"name":"level","type":"long","nullable":true,"metadata":{}}]}'
    """
    text = Schema.from_arrow(schema).to_json()
    try:
        # delta-rs writes JSON of any depth, and reads 128 levels.
        Schema.from_json(text)
    except ValueError as error:
        raise IncompatibleSchemaError(f"no table can have these columns: {error}") from error
    return text
