"""Events of many requests as Arrow columns: how they are checked and encoded together.

The result is the same as event by event. The module knows neither HTTP, Kafka nor the vault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from ptars import HandlerPool, PtarsConfig

from gamelake.model.arrays import Flags, Floats, Ints
from gamelake.schemas.framing import frame_header
from gamelake.schemas.text_lengths import offsets_of
from services.gateway.personal.fields import FieldPath

# Nanoseconds, so that a time is the same after it was read and encoded again.
_CONFIG = PtarsConfig(timestamp_unit="ns", timestamp_tz="UTC")
_NANOS_PER_SECOND = 1_000_000_000

# Classes of characters by byte value, and those of a UUID's 36 characters.
_OTHER, _HEX, _DASH = 0, 1, 2
_CLASSES = np.full(256, _OTHER, np.uint8)
_CLASSES[list(b"0123456789abcdefABCDEF")] = _HEX
_CLASSES[ord("-")] = _DASH
_UUID = np.array([_DASH if place in (8, 13, 18, 23) else _HEX for place in range(36)], np.uint8)


@dataclass(frozen=True, slots=True)
class ColumnarEvents:
    """Events as columns.

    Attributes:
        events: one row per event, the columns of the submitted contract; times in nanoseconds, UTC.
        uncertain: one flag per row: the event has to be read by itself, as its columns may not say all of it.
    """

    events: pa.RecordBatch
    uncertain: Flags


def handler_of(message: Descriptor) -> Any:  # noqa: ANN401 # ptars has no types
    """Return the converter between messages of this type and record batches."""
    return HandlerPool([message.file], config=_CONFIG).get_for_message(message)


def has_duplicate_map_keys(events: pa.RecordBatch) -> Flags:
    """Return one flag per row: a map has a key twice. Columns keep both entries, a message only the last."""
    found = np.zeros(events.num_rows, bool)
    for column in events.columns:
        if pa.types.is_map(column.type):
            rows = np.flatnonzero(_lengths(column) > 1)
            for row, entries in zip(rows, column.take(pa.array(rows)).to_pylist(), strict=True):
                found[row] = len(dict(entries)) < len(entries)
    return found


def invalid_events(events: pa.RecordBatch, earliest: Floats, latest: Floats, largest_amount: float) -> Flags:
    """Return one flag per row: a required text is missing, or a time or amount is out of bounds.

    Game names aren't checked.

    Args:
        events: columns of the submitted contract.
        earliest: lower bound of each row's `event_time`, included, in seconds since 1970 (float64).
        latest: upper bound of each row's, included.
        largest_amount: how far `event_params.amount` may be from zero.
    """
    valid = _are_uuids(events.column("event_id"))
    valid &= _lengths(events.column("event_name")) > 0
    valid &= _lengths(events.column("gamer_id")) > 0
    valid &= _are_between(events.column("event_time"), earliest, latest)
    amounts = pc.fill_null(pc.struct_field(events.column("event_params"), "amount"), 0.0).to_numpy()
    # NaN is not less than anything.
    valid &= np.abs(amounts) <= largest_amount
    return ~valid


def _are_between(times: pa.TimestampArray, earliest: Floats, latest: Floats) -> Flags:
    nanos = pc.fill_null(times.view(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    seconds = nanos // _NANOS_PER_SECOND
    return np.asarray((seconds >= earliest) & (seconds <= latest))


def _are_uuids(texts: pa.StringArray) -> Flags:
    valid = _lengths(texts) == len(_UUID)
    rows = np.flatnonzero(valid)
    if len(rows):
        chosen = texts if valid.all() else texts.take(pa.array(rows))
        offsets = offsets_of(chosen)
        characters = np.frombuffer(chosen.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        valid[rows] = (_CLASSES[characters].reshape(-1, len(_UUID)) == _UUID).all(axis=1)
    return np.asarray(valid)


def _lengths(column: pa.StringArray | pa.MapArray) -> Ints:
    return np.diff(offsets_of(column)).astype(np.int64)


class ColumnarEncoder:
    """Encodes events of the submitted contract as Kafka values of the lake's, without their personal fields."""

    def __init__(self, lake: Descriptor, schema_id: int, personal: Sequence[FieldPath]) -> None:
        self._handler = handler_of(lake)
        self._schema = self._handler.schema()
        self._personal = personal
        self._header = pa.scalar(frame_header(schema_id), pa.binary())
        self._nothing = pa.scalar(b"", pa.binary())

    def encode(self, events: pa.RecordBatch, overrides: Mapping[str, pa.Array]) -> list[bytes]:
        """Encode the events: one value per event, in the Confluent wire format.

        Args:
            events: columns of the submitted contract.
            overrides: columns by name that replace those of the events, one value per event, of the lake's types.
        """
        columns = [self._column(field, events, overrides) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        bodies = self._handler.record_batch_to_array(batch)
        values: list[bytes] = pc.binary_join_element_wise(self._header, bodies, self._nothing).to_pylist()
        return values

    def _column(self, field: pa.Field, events: pa.RecordBatch, overrides: Mapping[str, pa.Array]) -> pa.Array:
        override = overrides.get(field.name)
        if override is not None:
            return override
        paths = [(*path.parents, path.name) for path in self._personal]
        return _without(field, events.column(field.name), [path for path in paths if path[0] == field.name])


def _without(field: pa.Field, array: pa.Array, personal: Sequence[tuple[str, ...]]) -> pa.Array:
    """A column without the fields at some paths, which begin with the column's own name."""
    if any(len(path) == 1 for path in personal):
        return _empty(field, len(array))
    if not personal:
        return array
    inner = [path[1:] for path in personal]
    children = [
        _without(child, array.field(child.name), [path for path in inner if path[0] == child.name])
        for child in field.type
    ]
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=array.is_null())


def _empty(field: pa.Field, length: int) -> pa.Array:
    if field.nullable:
        return pa.nulls(length, field.type)
    return pa.repeat(pa.scalar("" if pa.types.is_string(field.type) else 0).cast(field.type), length)
