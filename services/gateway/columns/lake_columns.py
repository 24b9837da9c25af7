"""Columns to Kafka values: without what is personal, under the lake's schema, in the Confluent wire format."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor

from gamelake.wire.framing import frame_header
from services.gateway.columns.reading import handler_of
from services.gateway.personal.fields import FieldPath


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
