"""Decoded rows for the textbook ways: the fan-out's own decoder and columns, handed back to Spark."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.traffic import CONTRACTS, VERSIONS
from gamelake.layers.routing import Router
from gamelake.layers.silver import EVENT_DATE, conform
from gamelake.model.games import GamesContract
from gamelake.schemas.decoder import DecodedGroup, Decoder, MessageDecoder
from gamelake.schemas.event_schemas import load_schemas
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import SchemaCache, SchemaWait
from gamelake.storage.columns import merged
from gamelake.storage.store import Location, Store

GAME_TABLE = "game_table"

# One decoder for all tasks of a worker process, as in the fan-out.
_decoders: dict[tuple[str, str], Decoder] = {}


def decoded_columns() -> pa.Schema:
    """The columns of all versions together, and those that the tables are told apart and partitioned by."""
    schemas = [_columns_of(schema.message) for schema in load_schemas(CONTRACTS, VERSIONS)]
    whole: pa.Schema = reduce(merged, schemas)
    return whole.append(pa.field(EVENT_DATE, pa.date32())).append(pa.field(GAME_TABLE, pa.string()))


def _columns_of(message: object) -> pa.Schema:
    _, events = MessageDecoder(message).decode(pa.array([], pa.binary()))  # type: ignore[arg-type] # a Descriptor
    nothing = pa.array([], pa.int64())
    return conform(events, nothing, nothing).schema


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """The function that Spark maps over the records of a micro-batch (`mapInArrow`)."""

    registry_url: str
    lakehouse: Location
    contract: GamesContract
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode records; what can't be decoded is left out."""
        router = Router(self.contract, ())
        for batch in batches:
            for group in self._decoder().decode(batch.column("value")).groups:
                yield self._rows(batch, group, router)

    def _decoder(self) -> Decoder:
        key = (self.registry_url, self.lakehouse.uri)
        if key not in _decoders:
            cache = SchemaCache(SchemaRegistry(self.registry_url), Store(self.lakehouse), SchemaWait())
            _decoders[key] = Decoder(cache)
        return _decoders[key]

    def _rows(self, batch: pa.RecordBatch, group: DecodedGroup, router: Router) -> pa.RecordBatch:
        rows = pa.array(group.rows)
        partitions = batch.column("partition").cast(pa.int64()).take(rows)
        events = conform(group.columns, partitions, batch.column("offset").take(rows))
        codes = router.route(events.column("game_name"))
        more = {
            EVENT_DATE: pc.cast(events.column("event_time"), pa.date32()),
            GAME_TABLE: pa.array(router.tables).take(pa.array(codes)),
        }
        arrays = [more.get(field.name, _column(events, field)) for field in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.columns)


def _column(events: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if events.schema.get_field_index(field.name) < 0:
        return pa.nulls(len(events), field.type)
    return events.column(field.name)
