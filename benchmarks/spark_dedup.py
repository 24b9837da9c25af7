"""Spark's own way to drop what is sent twice: a stateful operator before the fan-out, keyed by game and event id."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from gamelake.schemas.decoder import Decoder
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import SchemaCache, SchemaWait
from gamelake.storage.store import Location, Store
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.plan import DedupPlan
from gamelake.streaming.runner import TriggerMode
from gamelake.streaming.settings import IngestSettings

_WINDOW = "10 minutes"
_RECORD = "key binary, value binary, partition int, offset long, timestamp timestamp, headers string"
_KEY = ("game_name", "event_id")
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_decoders: dict[str, Decoder] = {}


@dataclass(frozen=True, slots=True)
class IdentifyTask:
    """Puts beside each record the game and the id of its event, which Spark can't read from a Protobuf value."""

    registry_url: str
    lakehouse: Location

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records, with two columns more."""
        for batch in batches:
            groups = self._decoder().decode(batch.column("value")).groups
            rows = pa.concat_arrays([pa.array(group.rows) for group in groups])
            keys = [pa.concat_arrays([group.columns.column(name) for group in groups]) for name in _KEY]
            names = [*batch.schema.names, *_KEY]
            yield pa.RecordBatch.from_arrays([*batch.take(rows).columns, *keys], names=names)

    def _decoder(self) -> Decoder:
        if self.lakehouse.uri not in _decoders:
            schemas = SchemaCache(SchemaRegistry(self.registry_url), Store(self.lakehouse), SchemaWait())
            _decoders[self.lakehouse.uri] = Decoder(schemas)
        return _decoders[self.lakehouse.uri]


def start_deduplicated(
    spark: SparkSession, settings: IngestSettings, source: OpenStream, body: FanOut[DedupPlan], _mode: TriggerMode
) -> StreamingQuery:
    """Start the fan-out's query with Spark's deduplication in front of it, until the topic's present end."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STATE_STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    task = IdentifyTask(settings.registry_url, settings.lakehouse.location)
    records = source.topic.records(spark, settings.max_offsets_per_trigger)
    checkpoint = settings.lakehouse.location.child(source.generation.checkpoint)
    writer = _deduplicated(records, task).writeStream.foreachBatch(body).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _deduplicated(records: DataFrame, task: IdentifyTask) -> DataFrame:
    identified = records.mapInArrow(task, f"{_RECORD}, game_name string, event_id string")
    unique = identified.withWatermark("timestamp", _WINDOW).dropDuplicatesWithinWatermark([*_KEY])
    return unique.drop(*_KEY)
