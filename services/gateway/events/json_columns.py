"""JSON events as Arrow columns, made column by column from structs of the contract's type."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gamelake.model.arrays import Flags, Ints
from gamelake.schemas.json_types import parse_time, parse_times
from services.gateway.events.columns import ColumnarEvents, handler_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Makes a column of the values of some events (None: absent), given the row numbers of these events; an event whose
# value has the wrong type is marked as uncertain.
_Make = Callable[[Sequence[Any], "_Rows"], pa.Array]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The row numbers (int64) of the events at hand, and the flags of all events."""

    numbers: Ints
    uncertain: Flags


class JsonColumnReader:
    """Reads structs of one contract's type."""

    def __init__(self, event: Descriptor) -> None:
        self._schema = handler_of(event).schema()
        self._fields = _Fields(event, list(self._schema))

    def read(self, events: Sequence[msgspec.Struct]) -> ColumnarEvents:
        """Return the events as columns; raises any error if a column can't represent one of their values."""
        rows = _Rows(np.arange(len(events)), np.zeros(len(events), bool))
        columns = self._fields.columns(events, rows)
        return ColumnarEvents(pa.RecordBatch.from_arrays(columns, schema=self._schema), rows.uncertain)


class _Fields:
    """The fields of a message, in the order of its columns."""

    def __init__(self, message: Descriptor, fields: Sequence[pa.Field]) -> None:
        self._names = [field.name for field in fields]
        self._get = attrgetter(*self._names)
        self._makers = [_maker(message.fields_by_name[field.name], field) for field in fields]

    def columns(self, objects: Sequence[msgspec.Struct], rows: _Rows) -> list[pa.Array]:
        """One column for each field, one value for each object."""
        return [make(values, rows) for make, values in zip(self._makers, self._transposed(objects), strict=True)]

    def _transposed(self, objects: Sequence[msgspec.Struct]) -> Iterable[Sequence[Any]]:
        if not objects:
            return [()] * len(self._names)
        if len(self._names) == 1:
            return [[self._get(each) for each in objects]]
        return zip(*map(self._get, objects), strict=True)


def _maker(field: FieldDescriptor, column: pa.Field) -> _Make:
    if pa.types.is_timestamp(column.type):
        return _Times(column.type).make
    if pa.types.is_struct(column.type) and field.message_type is not None:
        return _Messages(field.message_type, column.type).make
    if pa.types.is_map(column.type):
        return lambda values, _: pa.array([list(each.items()) if each else () for each in values], column.type)
    if pa.types.is_list(column.type):
        return lambda values, _: pa.array([each or () for each in values], column.type)
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values} | {None: None}
        return lambda values, _: _filled(pa.array([numbers[each] for each in values], column.type), column)
    return lambda values, _: _filled(pa.array(values, column.type), column)


def _filled(array: pa.Array, column: pa.Field) -> pa.Array:
    """Replace null by the default value where the column has no null."""
    if column.nullable or not array.null_count:
        return array
    return array.fill_null("" if pa.types.is_string(column.type) else pa.scalar(0).cast(column.type))


class _Messages:
    """A field whose type is a message."""

    def __init__(self, message: Descriptor, kind: pa.StructType) -> None:
        self._kind = list(kind)
        self._fields = _Fields(message, self._kind)

    def make(self, values: Sequence[Any], rows: _Rows) -> pa.Array:
        present = np.fromiter((each is not None for each in values), bool, len(values))
        inner = _Rows(rows.numbers[present], rows.uncertain)
        columns = self._fields.columns([each for each in values if each is not None], inner)
        found = pa.StructArray.from_arrays(columns, fields=self._kind)
        if present.all():
            return found
        return found.take(pa.array(np.cumsum(present) - 1, mask=~present))


class _Times:
    """A time, which is RFC 3339 text in JSON."""

    def __init__(self, kind: pa.TimestampType) -> None:
        self._kind = kind

    def make(self, values: Sequence[Any], rows: _Rows) -> pa.Array:
        try:
            present = iter(parse_times([each for each in values if each is not None]))
            since = [None if each is None else next(present) - _EPOCH for each in values]
        except (TypeError, ValueError):
            since = [self._since(each, number, rows) for each, number in zip(values, rows.numbers, strict=True)]
        return pa.array(since, pa.duration("us")).cast(pa.duration("ns")).view(self._kind)

    def _since(self, text: str | None, number: int, rows: _Rows) -> timedelta | None:
        try:
            return None if text is None else parse_time(text) - _EPOCH
        except (TypeError, ValueError):  # not a time, or one without its offset
            rows.uncertain[number] = True
            return None
