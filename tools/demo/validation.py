"""The newest validation by Great Expectations in a demo's lakehouse, read from `gold/validations`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.model.naming import VALIDATIONS
from gamelake.objects.store import Location
from gamelake.quality.check_findings import CheckStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCounts:
    """Outcomes of the expectations on one game; `game` is empty for those on all games together."""

    game: str
    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed expectation: `observed` should be between `least` and `most`; None is unbounded."""

    game: str
    suite: str
    expectation: str
    severity: str
    observed: float | None
    least: float | None
    most: float | None
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """One run of suites for one day."""

    day: date
    validated_at: datetime
    games: tuple[ExpectationCounts, ...]
    failures: tuple[Failure, ...]


_COLUMNS = ("day", "validated_at", "status", *Failure.__slots__)


def newest_validation(lakehouse: Location) -> Validation | None:
    """Read the newest validation of any day; None if there is none."""
    table, options = lakehouse.child(VALIDATIONS), dict(lakehouse.options)
    if not DeltaTable.is_deltatable(table, options):
        return None
    rows = DeltaTable(table, storage_options=options).to_pyarrow_table(columns=list(_COLUMNS))
    newest = rows.filter(pc.equal(rows["validated_at"], pc.max(rows["validated_at"]))).to_pylist()
    if not newest:
        return None
    return Validation(
        day=newest[0]["day"],
        validated_at=newest[0]["validated_at"],
        games=tuple(_counts(newest)),
        failures=tuple(_failure(row) for row in newest if row["status"] == CheckStatus.FAILED),
    )


def _counts(rows: Sequence[Mapping[str, object]]) -> Sequence[ExpectationCounts]:
    counts = Counter((str(row["game"]), str(row["status"])) for row in rows)
    return [
        ExpectationCounts(
            game=game,
            passed=counts[game, CheckStatus.PASSED],
            failed=counts[game, CheckStatus.FAILED],
            skipped=counts[game, CheckStatus.SKIPPED],
        )
        for game in sorted({game for game, _ in counts})
    ]


def _failure(row: Mapping[str, object]) -> Failure:
    return Failure(**{name: row[name] for name in Failure.__slots__})  # type: ignore[arg-type] # the table's own types
