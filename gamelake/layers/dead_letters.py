"""The dead-letter table's rows."""

from collections.abc import Sequence

import pyarrow as pa

from gamelake.model.dead_letter_reasons import DeadLetterReason

_LONGEST_DETAIL = 500


def dead_letter_schema(bronze: pa.Schema) -> pa.Schema:
    """The bronze columns, with the reason and its detail in front."""
    return pa.schema([pa.field("reason", pa.string()), pa.field("detail", pa.string()), *bronze])


def as_dead_letters(
    bronze: pa.RecordBatch, rows: Sequence[int], reasons: Sequence[DeadLetterReason], details: Sequence[str]
) -> pa.RecordBatch:
    """The dead letters of a batch: the bronze rows at `rows`, each with its reason (parallel sequences)."""
    taken = bronze.take(pa.array(rows, pa.int64()))
    columns = [
        pa.array([reason.value for reason in reasons], pa.string()),
        pa.array([detail[:_LONGEST_DETAIL] for detail in details], pa.string()),
        *taken.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=dead_letter_schema(bronze.schema))
