"""Writes the table bronze/files: one row for each object that a notification named, with its outcome."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.columns import MICROSECONDS_UTC, delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.layers.bronze import BRONZE_PARTITION
from gamelake.model.naming import BRONZE_FILES
from gamelake.objects.store import Store
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.coordinates import ObjectPosition

FILES_SCHEMA = pa.schema(
    [
        pa.field("notified_at", MICROSECONDS_UTC),
        pa.field("bucket", pa.string()),
        pa.field("object", pa.string()),
        pa.field("version", pa.string()),
        pa.field("etag", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("dead_letters", pa.int64()),
        pa.field("overwrites", pa.bool_()),
        pa.field("kafka_partition", pa.int64()),
        pa.field("kafka_offset", pa.int64()),
        pa.field("first_record", pa.int64()),
    ]
)
_UNIQUE = frozenset({"object", "etag"})


class ObjectOutcome(StrEnum):
    """The outcome of an object: read, replaced by newer content, or a dead letter."""

    TAKEN = "taken"
    SUPERSEDED = "superseded"
    DEAD_LETTER = "dead_letter"


class ObjectResult(msgspec.Struct, frozen=True, kw_only=True):
    """A task's result for an object.

    Attributes:
        position: of the object in its notification.
        name: of the object; empty if the notification has no object.
        outcome: of the object.
        bytes: the stored size, from the notification.
        records: the number of records; an object that becomes a dead letter counts as one.
        dead_letters: the number of records that became dead letters.
        overwrites: True if the key had another content before.
    """

    position: ObjectPosition
    name: ObjectName
    outcome: ObjectOutcome
    bytes: int = 0
    records: int = 0
    dead_letters: int = 0
    overwrites: bool = False


def file_rows(results: Sequence[ObjectResult]) -> pa.Table:
    """Convert results to rows in the columns of FILES_SCHEMA, one per result, in order."""
    rows = [
        {
            "notified_at": datetime.fromtimestamp(each.position.microseconds / 1_000_000, UTC),
            "bucket": each.name.bucket,
            "object": each.name.key,
            "version": each.name.version or None,
            "etag": each.name.etag or None,
            "outcome": each.outcome.value,
            "bytes": each.bytes,
            "records": each.records,
            "dead_letters": each.dead_letters,
            "overwrites": each.overwrites,
            "kafka_partition": each.position.partition,
            "kafka_offset": each.position.offset,
            "first_record": each.position.first_offset,
        }
        for each in results
    ]
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def addition(store: Store, results: Sequence[ObjectResult]) -> tuple[TableFiles, ...]:
    """Write the rows of a batch as data files, one for each day; commit nothing.

    Args:
        store: the lakehouse.
        results: of the batch, at most one for each object.

    Returns:
        One entry for bronze/files; empty if the batch has no results.
    """
    rows = file_rows(results)
    if not len(rows):
        return ()
    days = rows["notified_at"].cast(pa.date32())
    files = tuple(_written(store, rows.filter(pc.equal(days, day)), day.as_py().isoformat()) for day in days.unique())
    schema = pa.schema([*FILES_SCHEMA, pa.field(BRONZE_PARTITION, pa.date32())])
    return (
        TableFiles(table=BRONZE_FILES, partition_by=(BRONZE_PARTITION,), schema=delta_schema_json(schema), files=files),
    )


def _written(store: Store, rows: pa.Table, day: str) -> DataFile:
    return write_rows(store, BRONZE_FILES, rows, {BRONZE_PARTITION: day}, _UNIQUE)
