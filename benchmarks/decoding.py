"""Decoding for approaches that are not the fan-out: its decoder and its columns, of all schema versions together."""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.traffic import CONTRACTS, VERSIONS
from gamelake.delta.columns import merged
from gamelake.layers.silver import EVENT_DATE, conform
from gamelake.objects.store import Location, Store
from gamelake.schemas.decoder import DecodedGroup, Decoder, MessageDecoder
from gamelake.schemas.event_schemas import load_schemas
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import SchemaCache, SchemaWait

# One decoder for all tasks of a worker process, as in the fan-out.
_decoders: dict[tuple[str, str], Decoder] = {}


def process_decoder(registry_url: str, lakehouse: Location) -> Decoder:
    """The decoder of this process for a registry and a lakehouse, which keeps the registry's schemas."""
    key = (registry_url, lakehouse.uri)
    if key not in _decoders:
        _decoders[key] = Decoder(SchemaCache(SchemaRegistry(registry_url), Store(lakehouse), SchemaWait()))
    return _decoders[key]


def event_columns() -> pa.Schema:
    """The columns of a game's table of all versions together, and the day that partitions it."""
    schemas = [_columns_of(schema.message) for schema in load_schemas(CONTRACTS, VERSIONS)]
    whole: pa.Schema = reduce(merged, schemas)
    return whole.append(pa.field(EVENT_DATE, pa.date32()))


def _columns_of(message: object) -> pa.Schema:
    _, events = MessageDecoder(message).decode(pa.array([], pa.binary()))  # type: ignore[arg-type] # a Descriptor
    nothing = pa.array([], pa.int64())
    return conform(events, nothing, nothing).schema


def event_rows(records: pa.RecordBatch, group: DecodedGroup, columns: pa.Schema) -> pa.RecordBatch:
    """The events of a group as rows.

    Args:
        records: the batch that the group was decoded from, with the columns partition and offset.
        group: events of one message type.
        columns: those of `event_columns`; null where the message has none.
    """
    rows = pa.array(group.rows)
    partitions = records.column("partition").cast(pa.int64()).take(rows)
    events = conform(group.columns, partitions, records.column("offset").take(rows))
    day = pc.cast(events.column("event_time"), pa.date32())
    arrays = [day if field.name == EVENT_DATE else _column(events, field) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _column(events: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if events.schema.get_field_index(field.name) < 0:
        return pa.nulls(len(events), field.type)
    return events.column(field.name)
