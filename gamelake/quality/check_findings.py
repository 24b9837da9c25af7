"""The findings of table checks, and the table gold/table_checks that keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import msgspec
import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.comments import CommentsOf, no_comments
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.model.logs import event_logger
from gamelake.model.naming import TABLE_CHECKS, game_table
from gamelake.objects.store import Store

log = event_logger(__name__)

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
_LONGEST_DETAIL = 500
# The finding of a table whose checks could not be made.
CHECKS_RAN = "checks_ran"


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
        """Return True if a value lies in the range."""
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


def checks_failed(game: str, error: str) -> TableFinding:
    """Return the finding that a game's checks could not be made, and why."""
    log.error("game_not_checked", game=game, error=error)
    return TableFinding(
        table=game_table(game),
        check=CHECKS_RAN,
        status=CheckStatus.FAILED,
        observed=1.0,
        expected=0.0,
        detail=error[:_LONGEST_DETAIL],
        bounds=Bounds(0, 0),
    )


def write_findings(
    store: Store, day: date, findings: Sequence[TableFinding], comments: CommentsOf = no_comments
) -> None:
    """Write the findings of a day, which replace earlier findings of that day.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    rows = [{_DAY: day, **msgspec.structs.asdict(each), "status": each.status.value} for each in findings]
    table = OwnedTable(
        store=store, path=TABLE_CHECKS, schema=_SCHEMA, partition_by=(_DAY,), comments=comments(TABLE_CHECKS)
    )
    file = table.write(pa.Table.from_pylist(rows, schema=_SCHEMA).drop_columns([_DAY]), {_DAY: str(day)})

    def attempt() -> None:
        handle = table.open()
        change = Replacement(
            files=[file],
            removed=table.files(handle, lambda each: each.partition[_DAY] == str(day)),
            transaction=BatchTransaction("table-checks", day.toordinal()),
        )
        if not table.commit(handle, change):
            raise CommitConflictError

    commit_with_retry(TABLE_CHECKS, _ATTEMPTS, attempt)
