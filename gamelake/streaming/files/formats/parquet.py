"""Parquet files with the contract's fields as columns, nested messages as structs."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.streaming.files.coordinates import MOST_EVENTS
from gamelake.streaming.files.formats.events import FileEvents, Framer, UnreadableFileError

_ROWS = 65_536


def read(content: bytes, framer: Framer) -> Iterator[FileEvents]:
    """The events of a file in parts of up to 65,536 rows, in order; the whole file is read first.

    Raises:
        UnreadableFileError: the file is no Parquet, or has a column with an unknown name or another type.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows > MOST_EVENTS:
            raise UnreadableFileError(f"the file has more than {MOST_EVENTS} events: split it")
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFileError(f"not the contract's events in Parquet: {error}") from None
    columns = _conformed(table, framer.schema)
    return (FileEvents(framer.values(batch)) for batch in columns.to_batches(max_chunksize=_ROWS))


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    _check_names(table.column_names, schema)
    columns = [_column(table, field) for field in schema]
    return pa.table(columns, names=schema.names).combine_chunks()


def _check_names(names: Sequence[str], known: Iterable[pa.Field]) -> None:
    if unknown := set(names) - {field.name for field in known}:
        raise UnreadableFileError(f"the contract has no field '{sorted(unknown)[0]}'")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UnreadableFileError(f"the field '{twice[0]}' is there twice")


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowException:
        # Arrow's own text quotes a value.
        raise UnreadableFileError(f"a column has the type {array.type}, which can't become {kind}") from None


def _column(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name not in table.column_names:
        return _conform(pa.nulls(table.num_rows, field.type), field)
    return _conform(table[field.name].combine_chunks(), field)


def _conform(array: pa.Array, field: pa.Field) -> pa.Array:
    """Cast an array to a field's type; null becomes the Protobuf default if the field has one."""
    kind = field.type
    if pa.types.is_struct(kind):
        return _struct(array, kind)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return _filled(_cast(array, _nullable(kind)), [])
    array = _cast(array, kind)
    if field.nullable or not array.null_count:
        return array
    return array.fill_null("" if pa.types.is_string(kind) else pa.scalar(0).cast(kind))


def _struct(array: pa.Array, kind: pa.StructType) -> pa.Array:
    if pa.types.is_null(array.type):
        array = array.cast(_nullable(kind))
    if not pa.types.is_struct(array.type):
        raise UnreadableFileError(f"a column has the type {array.type}, but in the contract it is a message")
    _check_names([field.name for field in array.type], kind)
    have = {field.name: place for place, field in enumerate(array.type)}
    flat = array.flatten()
    children = [
        _conform(flat[have[field.name]] if field.name in have else pa.nulls(len(array), _nullable(field.type)), field)
        for field in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_type)
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in kind])
    return kind


def _filled(array: pa.Array, value: list[object]) -> pa.Array:
    if not array.null_count:
        return array
    places = pa.array(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)))
    filled = array.to_pylist()
    for place in places.to_pylist():
        filled[place] = value
    return pa.array(filled, array.type)
