"""The bronze table's rows: Kafka records with their coordinates."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.bronze.headers import HEADERS, parse_headers

TIMESTAMP = pa.timestamp("us", "UTC")

# What a task gets of each record, its headers as JSON text. The topic is a constant of the query: it does not travel
# with each record.
RECORD_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("headers", pa.string()),
    ]
)

# Filter columns first: statistics are kept for the first 32. Long values last.
BRONZE_SCHEMA = pa.schema(
    [
        pa.field("kafka_timestamp", TIMESTAMP),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("schema_id", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("value", pa.binary()),
    ]
)
BRONZE_PARTITION = "ingest_date"
_MICROSECONDS_A_DAY = 86_400_000_000


def as_bronze(records: pa.RecordBatch, topic: str, schema_ids: pa.Array) -> pa.RecordBatch:
    """The bronze rows of a batch of records, in their order."""
    columns = {
        "kafka_timestamp": records.column("timestamp"),
        "topic": pa.repeat(pa.scalar(topic, pa.string()), len(records)),
        "partition": records.column("partition").cast(pa.int64()),
        "offset": records.column("offset"),
        "schema_id": schema_ids,
        "key": records.column("key"),
        "headers": parse_headers(records.column("headers")),
        "value": records.column("value"),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in BRONZE_SCHEMA.names], schema=BRONZE_SCHEMA)


def ingest_days(records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Days since 1970 (UTC) on which Kafka took the records in; the epoch where Kafka has no timestamp."""
    microseconds = pc.fill_null(records.column("timestamp").cast(pa.int64()), 0).to_numpy()
    return np.asarray(microseconds // _MICROSECONDS_A_DAY)
