"""Manifests of batches as tests need them, and the files that batches add to tables."""

from typing import Any

import msgspec
import pyarrow as pa

from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest, OffsetRange
from gamelake.objects.store import Store

_EMPTY = BatchManifest(
    stream="ingest_events",
    query_id="query",
    generation=0,
    batch_id=0,
    topic="events",
    topic_id="topic",
    written_at="2026-01-01T00:00:00+00:00",
    offsets=(),
    tables=(),
    dead_letters={},
)


def a_manifest(**fields: Any) -> BatchManifest:  # noqa: ANN401 # as many types as fields
    """Return the manifest of a batch without records, with other values in some fields."""
    return msgspec.structs.replace(_EMPTY, **fields)


def offsets_of(first: int, last: int, partition: int = 0) -> OffsetRange:
    """Return a range of a partition's offsets that has a record at each of them."""
    return OffsetRange(partition=partition, first=first, last=last, records=last - first + 1)


def files_of(store: Store, table: str, rows: pa.Table) -> TableFiles:
    """Write rows as the one file that a batch adds to a table without partitions."""
    file = write_rows(store, table, rows, {})
    return TableFiles(table=table, partition_by=(), schema=delta_schema_json(rows.schema), files=(file,))
