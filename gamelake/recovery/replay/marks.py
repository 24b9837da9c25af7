"""Marks of settled records: rows of dead_letters/replayed and quarantine/replayed.

A mark consists of the number of the replay run, the Kafka coordinates of the record, and the reason why the record was
in the source.
"""

from datetime import UTC, datetime

import pyarrow as pa

from gamelake.layers.bronze import TIMESTAMP
from gamelake.model.naming import DEAD_LETTERS, QUARANTINE, RELEASED, REPLAYED

# By source of a replay: the table of its marks, and the column with the reason why a record is in the source.
MARKED_IN = {DEAD_LETTERS: REPLAYED, QUARANTINE: RELEASED}
WHY = {DEAD_LETTERS: "reason", QUARANTINE: "rule"}
# The columns that identify a record: offsets alone repeat after a topic was recreated.
COORDINATES = ("topic", "partition", "offset", "kafka_timestamp")


def as_marks(letters: pa.RecordBatch, run: int, why: str) -> pa.RecordBatch:
    """Return marks for records that have become rows, or whose events the tables have already.

    Args:
        letters: columns `topic`, `partition`, `offset`, `timestamp` (us, UTC) and `why`.
        run: number of the replay run.
        why: name of the column with the reason: `reason` of dead letters, `rule` of quarantined rows.

    Returns:
        One row for each record, in the same order, with the columns of the table of marks.
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
