"""Casts the columns of a file to the types of the contract's message."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from gamelake.streaming.files.formats.events import UnreadableFileError

# The column for a table's index, which pandas writes by default. It has no data of an event.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class Conformer:
    """Casts columns to the types of a message; a missing column or a null becomes the Protobuf default.

    Args:
        message: of the contract.
        schema: the columns of the message, with their types.
    """

    def __init__(self, message: Descriptor, schema: pa.Schema) -> None:
        self._message = message
        self._schema = schema

    def conformed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same rows, in order, with exactly the columns of the message.

        Args:
            rows: with some columns of the message, in any order; a column of pandas' index is ignored.

        Raises:
            UnreadableFileError: a column has a name that the contract lacks, or a type that can't be cast.
        """
        _check_names([name for name in rows.schema.names if not _PANDAS_INDEX.fullmatch(name)], self._schema)
        columns = [
            _conform(
                rows.column(field.name) if field.name in rows.schema.names else pa.nulls(len(rows), field.type),
                field,
                self._message,
            )
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)


def _check_names(names: Sequence[str], known: Iterable[pa.Field]) -> None:
    if unknown := set(names) - {field.name for field in known}:
        raise UnreadableFileError(f"the contract has no field '{sorted(unknown)[0]}'")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UnreadableFileError(f"the field '{twice[0]}' occurs twice")


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowException:
        # Arrow's own text quotes a value.
        raise UnreadableFileError(f"a column has the type {array.type}, which can't become {kind}") from None


def _conform(array: pa.Array, field: pa.Field, message: Descriptor) -> pa.Array:
    """Cast an array to a field's type; null becomes the Protobuf default if the field has one."""
    kind, contract = field.type, message.fields_by_name[field.name]
    if pa.types.is_struct(kind) and contract.message_type is not None:
        return _struct(array, kind, contract.message_type)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return _filled(_cast(array, _nullable(kind)), [])
    if contract.enum_type is not None and pa.types.is_string(array.type):
        array = _numbers(array, contract.enum_type)
    array = _cast(array, kind)
    if field.nullable or not array.null_count:
        return array
    return array.fill_null("" if pa.types.is_string(kind) else pa.scalar(0).cast(kind))


def _numbers(names: pa.StringArray, enum: EnumDescriptor) -> pa.Array:
    """Return the numbers (int32) of an enumeration's names, one per element; a null stays null."""
    known = pa.array([value.name for value in enum.values], pa.string())
    places = pc.index_in(names, known)
    if places.null_count > names.null_count:
        raise UnreadableFileError(f"a column has a name that {enum.name} lacks")
    return pc.take(pa.array([value.number for value in enum.values], pa.int32()), places)


def _struct(array: pa.Array, kind: pa.StructType, message: Descriptor) -> pa.Array:
    if pa.types.is_null(array.type):
        array = array.cast(_nullable(kind))
    if not pa.types.is_struct(array.type):
        raise UnreadableFileError(f"a column has the type {array.type}, but in the contract it is a message")
    _check_names([field.name for field in array.type], kind)
    have = {field.name: place for place, field in enumerate(array.type)}
    flat = array.flatten()
    children = [
        _conform(
            flat[have[field.name]] if field.name in have else pa.nulls(len(array), _nullable(field.type)),
            field,
            message,
        )
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
