"""gold/validations: what each expectation came to in each run, kept for as long as the table."""

import uuid
from collections.abc import Sequence
from datetime import date, datetime

import pyarrow as pa

from gamelake.lake.appends import BatchTransaction
from gamelake.lake.columns import MICROSECONDS_UTC
from gamelake.lake.comments import CommentsOf, no_comments
from gamelake.lake.datafile import write_rows
from gamelake.lake.manifest import TableFiles
from gamelake.lake.store import Store
from gamelake.lake.tables import DeltaTables, delta_schema_json
from gamelake.naming import VALIDATIONS
from gamelake.quality.suites.running import Outcome

_DAY = "day"
_SCHEMA = pa.schema(
    [
        pa.field(_DAY, pa.date32()),
        pa.field("validated_at", MICROSECONDS_UTC),
        pa.field("suite", pa.string()),
        pa.field("game", pa.string()),
        pa.field("table", pa.string()),
        pa.field("expectation", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("status", pa.string()),
        pa.field("observed", pa.float64()),
        pa.field("least", pa.float64()),
        pa.field("most", pa.float64()),
        pa.field("expect", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("owner", pa.string()),
        pa.field("why", pa.string()),
        pa.field("detail", pa.string()),
    ]
)


def keep(
    store: Store, day: date, at: datetime, outcomes: Sequence[Outcome], comments: CommentsOf = no_comments
) -> None:
    """Add what a run of suites for a day came to; `at` tells it from other runs for the day.

    Raises:
        CommitFailedError: others were faster at every attempt.
    """
    rows = pa.Table.from_pylist([_row(day, at, each) for each in outcomes], schema=_SCHEMA)
    file = write_rows(store, VALIDATIONS, rows.drop_columns([_DAY]), {_DAY: day.isoformat()})
    entry = TableFiles(table=VALIDATIONS, partition_by=(_DAY,), schema=delta_schema_json(_SCHEMA), files=(file,))
    with DeltaTables(store.location, comments) as tables:
        tables.append(entry, BatchTransaction(f"validation-{uuid.uuid4()}", 0))


def _row(day: date, at: datetime, outcome: Outcome) -> dict[str, object]:
    suite, expected = outcome.suite, outcome.expected
    return {
        _DAY: day,
        "validated_at": at,
        "suite": suite.name.value,
        "game": suite.game,
        "table": suite.table,
        "expectation": expected.name,
        "severity": expected.weight.value,
        "status": outcome.status.value,
        "observed": outcome.observed,
        "least": expected.bounds.least,
        "most": expected.bounds.most,
        "expect": expected.expect,
        "fingerprint": expected.fingerprint,
        "owner": expected.owner,
        "why": expected.why,
        "detail": outcome.detail,
    }
