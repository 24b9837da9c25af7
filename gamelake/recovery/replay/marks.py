"""The rows of the tables that say which dead letters, and which quarantined rows, need nothing more.

Each by its run and the coordinates of its record.
"""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.bronze import TIMESTAMP
from gamelake.model.naming import DEAD_LETTERS, QUARANTINE, RELEASED, REPLAYED

# Of what a replay settles: the table that says so, and the column that says why a record stood there.
MARKED_IN = {DEAD_LETTERS: REPLAYED, QUARANTINE: RELEASED}
WHY = {DEAD_LETTERS: "reason", QUARANTINE: "rule"}
# What tells a record from all others; offsets alone begin anew when a topic is made again.
COORDINATES = ("topic", "partition", "offset", "kafka_timestamp")


def as_marks(letters: pa.RecordBatch, run: int, why: str) -> pa.RecordBatch:
    """The marks of records that have become rows, or whose events the tables have had already.

    `why` is the column that says why they stood where they did.
    """
    columns = {
        why: letters.column(why),
        "run": pa.repeat(pa.scalar(run, pa.int64()), len(letters)),
        "replayed_at": pa.repeat(pa.scalar(datetime.now(UTC), TIMESTAMP), len(letters)),
        "topic": letters.column("topic"),
        "partition": letters.column("partition").cast(pa.int64()),
        "offset": letters.column("offset"),
        "kafka_timestamp": letters.column("timestamp").cast(TIMESTAMP),
    }
    return pa.RecordBatch.from_pydict(columns)


def without(letters: pa.RecordBatch, rows: list[int]) -> pa.RecordBatch:
    """The letters but for those at some rows."""
    return letters.filter(pc.invert(pc.is_in(pa.array(range(len(letters)), pa.int64()), pa.array(rows, pa.int64()))))
