"""Bronze: Kafka records with their coordinates; schemas of records and of the table, and Kafka headers."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
# Spark SQL; values are in hexadecimal, as JSON has no bytes.
HEADERS_AS_JSON = (
    "CASE WHEN headers IS NOT NULL THEN "
    "to_json(transform(headers, h -> named_struct('key', h.key, 'value', hex(h.value)))) END"
)
_PARSED = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())])))
_NIBBLES = np.zeros(256, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789ABCDEF", np.uint8)] = np.arange(16)
TIMESTAMP = pa.timestamp("us", "UTC")
# The columns of records in a task, headers as JSON. The topic is a constant of the query and no column.
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


def parse_headers(texts: pa.StringArray) -> pa.ListArray:
    """Parse the headers of records.

    Args:
        texts: string, one for each record, as `HEADERS_AS_JSON` makes them: a JSON array of objects with `key` (string)
            and `value` (hexadecimal string or null); null for a record without headers.

    Returns:
        One list of headers for each record, of type `HEADERS`; null where `texts` is.
    """
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), HEADERS)
    given = texts.drop_null()
    lines = pc.binary_join_element_wise('{"headers":', given, "}\n", "")
    document = b"".join(lines.cast(pa.binary()).to_pylist())
    parsed = pj.read_json(
        pa.BufferReader(document),
        read_options=pj.ReadOptions(block_size=len(document)),
        parse_options=pj.ParseOptions(explicit_schema=pa.schema([pa.field("headers", _PARSED)])),
    )
    lists = parsed["headers"].combine_chunks()
    pairs = lists.values
    structs = pa.StructArray.from_arrays(
        [pairs.field("key"), _unhex(pairs.field("value"))], fields=list(HEADERS.value_type)
    )
    whole = pa.ListArray.from_arrays(lists.offsets, structs, HEADERS)
    positions = np.cumsum(texts.is_valid().to_numpy(zero_copy_only=False)) - 1
    return whole.take(pa.array(positions, mask=texts.is_null().to_numpy(zero_copy_only=False)))


def _unhex(texts: pa.StringArray) -> pa.BinaryArray:
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    digits = _NIBBLES[np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]]
    content = ((digits[0::2] << 4) | digits[1::2]).astype(np.uint8)
    starts = ((offsets - offsets[0]) // 2).astype(np.int32)
    validity = texts.is_valid() if texts.null_count else None
    buffers = [validity.buffers()[1] if validity is not None else None, pa.py_buffer(starts), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers, texts.null_count)


def as_bronze(records: pa.RecordBatch, topic: str, schema_ids: pa.Array) -> pa.RecordBatch:
    """The bronze rows of a batch of records.

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
        "headers": parse_headers(records.column("headers")),
        "value": records.column("value"),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in BRONZE_SCHEMA.names], schema=BRONZE_SCHEMA)


def ingest_days(records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The UTC days of the records' Kafka timestamps.

    Args:
        records: with a column `timestamp` (microseconds, UTC).

    Returns:
        Days since 1970-01-01 (int64), one for each record; 0 where the timestamp is null.
    """
    microseconds = pc.fill_null(records.column("timestamp").cast(pa.int64()), 0).to_numpy()
    return np.asarray(microseconds // _MICROSECONDS_A_DAY)
