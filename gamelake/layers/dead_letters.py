"""Dead letters: bronze rows with the reason why they could not become silver rows."""

from collections.abc import Sequence

import pyarrow as pa

from gamelake.model.dead_letter_reasons import DeadLetterReason

_LONGEST_DETAIL = 500


def dead_letter_schema(bronze: pa.Schema) -> pa.Schema:
    """Return the columns `reason` and `detail` (string), then those of bronze."""
    return pa.schema([pa.field("reason", pa.string()), pa.field("detail", pa.string()), *bronze])


def as_dead_letters(
    bronze: pa.RecordBatch, rows: Sequence[int], reasons: Sequence[DeadLetterReason], details: Sequence[str]
) -> pa.RecordBatch:
    """Return the dead letters of a batch.

    Args:
        bronze: the batch's bronze rows, with any columns.
        rows: positions in `bronze`, one for each dead letter.
        reasons: one for each of `rows`.
        details: one for each of `rows`; cut after 500 characters.

    Returns:
        Columns of `dead_letter_schema`, one row for each of `rows`, in their order.
    """
    taken = bronze.take(pa.array(rows, pa.int64()))
    columns = [
        pa.array([reason.value for reason in reasons], pa.string()),
        pa.array([detail[:_LONGEST_DETAIL] for detail in details], pa.string()),
        *taken.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=dead_letter_schema(bronze.schema))
