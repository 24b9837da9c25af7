"""The table of files: one row for each object that a notification named, and what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.bronze import BRONZE_PARTITION
from gamelake.model.naming import BRONZE_FILES
from gamelake.storage.columns import MICROSECONDS_UTC
from gamelake.storage.data_files import DataFile, write_rows
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import delta_schema_json
from gamelake.streaming.files.coordinates import ObjectPosition
from gamelake.streaming.files.notifications import ObjectName

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
    """What became of an object; a dead letter has the reason besides."""

    TAKEN = "taken"
    SUPERSEDED = "superseded"
    DEAD_LETTER = "dead_letter"


class ObjectResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a task says of an object: records that stood in it, and how many of them became dead letters."""

    place: ObjectPosition
    name: ObjectName
    outcome: ObjectOutcome
    bytes: int = 0
    records: int = 0
    dead_letters: int = 0
    overwrites: bool = False


def file_rows(accounts: Sequence[ObjectResult]) -> pa.Table:
    """Accounts as rows of the table."""
    rows = [
        {
            "notified_at": datetime.fromtimestamp(each.place.microseconds / 1_000_000, UTC),
            "bucket": each.name.bucket,
            "object": each.name.key,
            "version": each.name.version or None,
            "etag": each.name.etag or None,
            "outcome": each.outcome.value,
            "bytes": each.bytes,
            "records": each.records,
            "dead_letters": each.dead_letters,
            "overwrites": each.overwrites,
            "kafka_partition": each.place.partition,
            "kafka_offset": each.place.offset,
            "first_record": each.place.first_offset,
        }
        for each in accounts
    ]
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def addition(store: Store, accounts: Sequence[ObjectResult]) -> tuple[TableFiles, ...]:
    """What a batch adds to the table, written but not committed; nothing if it has no object."""
    rows = file_rows(accounts)
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
