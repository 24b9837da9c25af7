"""Events of many requests as Arrow columns: how they are read, checked and encoded together.

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

from gamelake.schemas.framing import Flags, Ints, frame_header
from services.gateway.personal.fields import FieldPath

# Nanoseconds, so that a time is what it was when it is written again.
_CONFIG = PtarsConfig(timestamp_unit="ns", timestamp_tz="UTC")


@dataclass(frozen=True, slots=True)
class Read:
    """Events as columns of the submitted contract; those in doubt have to be looked at one by one."""

    events: pa.RecordBatch
    in_doubt: Flags


def handler_of(message: Descriptor) -> Any:  # noqa: ANN401 # ptars has no types
    """What turns messages into columns and back."""
    return HandlerPool([message.file], config=_CONFIG).get_for_message(message)


def says_a_key_twice(events: pa.RecordBatch) -> Flags:
    """Which events have a map in which a key stands twice: as columns both stay, in a message the last."""
    found = np.zeros(events.num_rows, bool)
    for column in events.columns:
        if pa.types.is_map(column.type):
            rows = np.flatnonzero(_lengths(column) > 1)
            for row, entries in zip(rows, column.take(pa.array(rows)).to_pylist(), strict=True):
                found[row] = len(dict(entries)) < len(entries)
    return found


def _lengths(column: pa.MapArray) -> Ints:
    # pyarrow's own functions for lists end the process when they are given a map.
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return np.diff(offsets).astype(np.int64)


_NANOS_PER_SECOND = 1_000_000_000
_OTHER, _HEX, _DASH = 0, 1, 2
_KINDS = np.full(256, _OTHER, np.uint8)
_KINDS[list(b"0123456789abcdefABCDEF")] = _HEX
_KINDS[ord("-")] = _DASH
_UUID = np.array([_DASH if place in (8, 13, 18, 23) else _HEX for place in range(36)], np.uint8)


def may_not_pass(events: pa.RecordBatch, earliest: float, latest: float) -> Flags:
    """Which events lack a text, or have no time in these bounds (seconds since 1970); of game names it says nothing."""
    good = _are_uuids(events.column("event_id"))
    good &= _lengths(events.column("event_name")) > 0
    good &= _lengths(events.column("gamer_id")) > 0
    good &= _are_between(events.column("event_time"), earliest, latest)
    return ~good


def _are_between(times: pa.TimestampArray, earliest: float, latest: float) -> Flags:
    nanos = pc.fill_null(times.view(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    seconds = nanos // _NANOS_PER_SECOND
    return np.asarray((seconds >= earliest) & (seconds <= latest))


def _offsets(texts: pa.StringArray) -> Ints:
    raw = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return raw.astype(np.int64)


def _are_uuids(texts: pa.StringArray) -> Flags:
    good = _lengths(texts) == len(_UUID)
    rows = np.flatnonzero(good)
    if len(rows):
        chosen = texts if good.all() else texts.take(pa.array(rows))
        offsets = _offsets(chosen)
        characters = np.frombuffer(chosen.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        good[rows] = (_KINDS[characters].reshape(-1, len(_UUID)) == _UUID).all(axis=1)
    return np.asarray(good)


class LakeColumns:
    """Writes events of the submitted contract as the lake's."""

    def __init__(self, lake: Descriptor, schema_id: int, personal: Sequence[FieldPath]) -> None:
        self._handler = handler_of(lake)
        self._schema = self._handler.schema()
        self._personal = personal
        self._header = pa.scalar(frame_header(schema_id), pa.binary())
        self._nothing = pa.scalar(b"", pa.binary())

    def values(self, events: pa.RecordBatch, written_by_us: Mapping[str, pa.Array]) -> list[bytes]:
        """One value per event; columns that the platform writes itself replace what came in."""
        columns = [self._column(field, events, written_by_us) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        bodies = self._handler.record_batch_to_array(batch)
        values: list[bytes] = pc.binary_join_element_wise(self._header, bodies, self._nothing).to_pylist()
        return values

    def _column(self, field: pa.Field, events: pa.RecordBatch, written_by_us: Mapping[str, pa.Array]) -> pa.Array:
        ours = written_by_us.get(field.name)
        if ours is not None:
            return ours
        paths = [(*path.parents, path.name) for path in self._personal]
        return _without(field, events.column(field.name), [path for path in paths if path[0] == field.name])


def _without(field: pa.Field, array: pa.Array, personal: Sequence[tuple[str, ...]]) -> pa.Array:
    """A column without what stands at some paths of names, which begin with its own."""
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
