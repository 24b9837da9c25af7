"""Bronze: Kafka records with their coordinates; schemas of records and of the table, and Kafka headers."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from gamelake.model.arrays import Ints

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
# Names and values; an absent value is None.
Headers = Sequence[tuple[str | None, bytes | None]]
TIMESTAMP = pa.timestamp("us", "UTC")
# The columns of records in a task; no timestamp is null. The topic is a constant of the query and no column.
RECORD_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("headers", HEADERS),
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


def header_lists(headers: Sequence[Headers | None]) -> pa.ListArray:
    """Return the headers of records as a column.

    Args:
        headers: of each record, in their order; None or empty for a record without headers.

    Returns:
        One list for each record, of type `HEADERS`; null for a record without headers.
    """
    if not any(headers):
        return pa.nulls(len(headers), HEADERS)
    pairs = list(chain.from_iterable(each or () for each in headers))
    structs = pa.StructArray.from_arrays(
        [pa.array([name for name, _ in pairs], pa.string()), pa.array([value for _, value in pairs], pa.binary())],
        fields=list(HEADERS.value_type),
    )
    offsets = np.cumsum([0, *(len(each or ()) for each in headers)], dtype=np.int32)
    absent = pa.array([not each for each in headers], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), structs, HEADERS, mask=absent)


def as_bronze(records: pa.RecordBatch, topic: str, schema_ids: pa.Array) -> pa.RecordBatch:
    """Return the bronze rows of a batch of records.

    Args:
        records: columns of `RECORD_SCHEMA`, one row for each record.
        topic: of all records.
        schema_ids: int64, one for each record; null where the value has no valid frame.

    Returns:
        Columns of `BRONZE_SCHEMA`, one row for each record, in the records' order.
    """
    columns = {
        "kafka_timestamp": records.column("timestamp"),
        "topic": pa.repeat(pa.scalar(topic, pa.string()), len(records)),
        "partition": records.column("partition").cast(pa.int64()),
        "offset": records.column("offset"),
        "schema_id": schema_ids,
        "key": records.column("key"),
        "headers": records.column("headers"),
        "value": records.column("value"),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in BRONZE_SCHEMA.names], schema=BRONZE_SCHEMA)


def ingest_days(records: pa.RecordBatch) -> Ints:
    """Return the UTC days of the records' Kafka timestamps.

    Args:
        records: with a column `timestamp` (microseconds, UTC).

    Returns:
        Days since 1970-01-01 (int64), one for each record.
    """
    return np.asarray(records.column("timestamp").cast(pa.int64()).to_numpy() // _MICROSECONDS_A_DAY)
