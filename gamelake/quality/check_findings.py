"""The findings of table checks, and the table gold/table_checks that keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import msgspec
import pyarrow as pa
from deltalake.exceptions import TableNotFoundError

from gamelake.model.naming import TABLE_CHECKS
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.comments import CommentsOf, no_comments
from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.data_files import DataFile, write_rows
from gamelake.storage.delta_log import live_files
from gamelake.storage.manifests import TableFiles
from gamelake.storage.rewrites import Replacement
from gamelake.storage.store import Store
from gamelake.storage.tables import delta_schema_json, open_table

_DAY = "day"
_SCHEMA = pa.schema(
    [
        pa.field(_DAY, pa.date32()),
        pa.field("table", pa.string()),
        pa.field("check", pa.string()),
        pa.field("status", pa.string()),
        pa.field("observed", pa.float64()),
        pa.field("expected", pa.float64()),
        pa.field("detail", pa.string()),
    ]
)
_ATTEMPTS = 20


class CheckStatus(StrEnum):
    """The status of a check; a check without enough history is skipped."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a valid value, both ends included; None for no limit."""

    least: float | None
    most: float | None

    def hold(self, observed: float) -> bool:
        """Whether a value lies in the range."""
        return (self.least is None or observed >= self.least) and (self.most is None or observed <= self.most)

    @property
    def text(self) -> str:
        """The range as text, or the one number that both ends are."""
        least, most = ("any" if end is None else f"{end:,.6g}" for end in (self.least, self.most))
        return least if self.least == self.most else f"{least} to {most}"


class TableFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of one table.

    `observed` and `expected` are the compared values, if they are numbers; `bounds` is the valid range of `observed`,
    None if there was not enough history.
    """

    table: str
    check: str
    status: CheckStatus
    observed: float | None = None
    expected: float | None = None
    detail: str = ""
    bounds: Bounds | None = None


def write_findings(
    store: Store, day: date, findings: Sequence[TableFinding], comments: CommentsOf = no_comments
) -> None:
    """Write the findings of a day, which replace earlier findings of that day.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    rows = [{_DAY: day, **msgspec.structs.asdict(each), "status": each.status.value} for each in findings]
    file = write_rows(
        store, TABLE_CHECKS, pa.Table.from_pylist(rows, schema=_SCHEMA).drop_columns([_DAY]), {_DAY: str(day)}
    )
    commit_with_retry(TABLE_CHECKS, _ATTEMPTS, lambda: _commit(store, day, file, comments))


def _commit(store: Store, day: date, file: DataFile, comments: CommentsOf) -> None:
    try:
        handle = open_table(store.location, TABLE_CHECKS)
    except TableNotFoundError:
        handle = None
    replacement = Replacement(
        entry=TableFiles(table=TABLE_CHECKS, partition_by=(_DAY,), schema=delta_schema_json(_SCHEMA), files=(file,)),
        removed=[each for each in live_files(handle) if each.partition[_DAY] == str(day)] if handle else [],
        transaction=BatchTransaction("table-checks", day.toordinal()),
        table_id=str(handle.metadata().id) if handle else "",
        properties=None if handle else {},
        comments=comments(TABLE_CHECKS),
    )
    if not replacement.commit(store, handle.version() + 1 if handle else 0):
        raise CommitConflictError
