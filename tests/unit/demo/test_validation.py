"""The section of the report on a day that Great Expectations validated."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.objects.store import Location
from tests.unit.demo.builders import a_summary
from tools.demo.figures import Summary
from tools.demo.options import DemoError, DemoPaths
from tools.demo.redraw import main as redraw
from tools.demo.report import as_page
from tools.demo.validation import ExpectationCounts, Failure, Validation, newest_validation

DAY = date(2026, 1, 8)
MORNING, NOON = datetime(2026, 1, 9, 6, tzinfo=UTC), datetime(2026, 1, 9, 12, tzinfo=UTC)
_SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("validated_at", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in ("suite", "game", "expectation", "severity", "status", "owner")),
        *((name, pa.float64()) for name in ("observed", "least", "most")),
    ]
)
LEVELS = Failure(
    game="archery_duel",
    suite="rules",
    expectation="levels_go_on",
    severity="warning",
    observed=12,
    least=0,
    most=0,
    owner="data@games.example",
)


def a_row(at: datetime, game: str, status: str, **values: object) -> Mapping[str, object]:
    said = {"suite": "rules", "expectation": "any", "severity": "info", "owner": "", "observed": 1.0, "least": 0.0}
    return {"day": DAY, "validated_at": at, "game": game, "status": status, **said, "most": None, **values}


def lakehouse_with(folder: Path, *rows: Mapping[str, object]) -> Location:
    """Write a lakehouse with the results of expectations."""
    write_deltalake((folder / "gold/validations").as_uri(), pa.Table.from_pylist(list(rows), _SCHEMA))
    return Location(uri=folder.as_uri())


def a_validation(*failures: Failure) -> Validation:
    games = (
        ExpectationCounts(game="", passed=9, failed=0, skipped=0),
        ExpectationCounts(game="archery_duel", passed=17, failed=len(failures), skipped=2),
    )
    return Validation(day=DAY, validated_at=NOON, games=games, failures=failures)


def test_a_lakehouse_without_validations_has_no_newest_one(tmp_path: Path) -> None:
    assert newest_validation(Location(uri=tmp_path.as_uri())) is None


def test_the_newest_run_counts_and_earlier_ones_do_not(tmp_path: Path) -> None:
    failed = {name: getattr(LEVELS, name) for name in Failure.__slots__ if name != "game"}
    location = lakehouse_with(
        tmp_path,
        a_row(MORNING, "bingo_harbor", "failed"),
        a_row(NOON, "archery_duel", "passed"),
        a_row(NOON, "archery_duel", "failed", **failed),
        a_row(NOON, "archery_duel", "skipped", observed=None),
        a_row(NOON, "", "passed"),
    )

    found = newest_validation(location)

    assert found == Validation(
        day=DAY,
        validated_at=NOON,
        games=(
            ExpectationCounts(game="", passed=1, failed=0, skipped=0),
            ExpectationCounts(game="archery_duel", passed=1, failed=1, skipped=1),
        ),
        failures=(LEVELS,),
    )


def test_the_page_names_what_failed_and_whom_to_ask() -> None:
    page = as_page(a_summary(), a_validation(LEVELS))

    assert "26 expectations passed, 1 failed, 2 were skipped without data" in page
    assert "levels_go_on" in page
    assert "data@games.example" in page


def test_the_page_says_how_a_day_is_judged_while_none_was() -> None:
    assert "<code>make quality</code> validates the newest day" in as_page(a_summary())


def test_the_page_has_the_outcomes_of_each_game() -> None:
    page = as_page(a_summary(), a_validation(LEVELS))

    assert '<th scope="row">archery_duel</th><td class="number">' in page
    assert '<th scope="row">all games</th><td class="number">' in page


def test_figures_of_a_run_can_be_read_again() -> None:
    summary = a_summary()

    assert Summary.from_json(summary.to_json()) == summary


def test_figures_of_another_form_are_refused_with_the_remedy() -> None:
    with pytest.raises(DemoError, match="run make demo again"):
        Summary.from_json(b'{"asked": 1}')


def test_the_page_of_a_run_gains_what_was_found_since(tmp_path: Path) -> None:
    paths = DemoPaths.under(tmp_path)
    paths.summary.write_bytes(a_summary().to_json())
    lakehouse_with(tmp_path / "lakehouse", a_row(NOON, "archery_duel", "passed"))

    assert redraw(["--directory", str(tmp_path)]) == 0

    assert "1 expectations passed" in paths.report.read_text(encoding="utf-8")


def test_without_a_run_there_is_no_page_to_draw(tmp_path: Path) -> None:
    assert redraw(["--directory", str(tmp_path)]) == 0
    assert not DemoPaths.under(tmp_path).report.exists()
