"""`make lint` checks what contracts, rules, views and questions declare, and names file and line."""

import re
import shutil
from pathlib import Path

import pytest

from gamelake.model.naming import NO_AGGREGATES
from gamelake.serving.live_ops.signals.watch_tables import MINUTES, SIGNALS
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE
from tools.contracts import REPOSITORY, problems

_FOLDERS = ("contracts", "quality", "sql", "monitoring", "compose/kafka", "compose/object-store", "compose/postgres")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of everything that is declared."""
    for folder in (*_FOLDERS, "compose/registry"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def replace(file: Path, old: str, new: str) -> int:
    """Replace the first occurrence of a text; returns its line."""
    before, found, after = file.read_text().partition(old)
    assert found
    file.write_text(before + new + after)
    return before.count("\n") + 1


def test_what_the_repository_declares_is_right() -> None:
    assert list(problems(REPOSITORY)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("contracts/metrics.yaml", "expr: gamer_id,", "expr: player_id,", "can't be computed from silver/events"),
        ("contracts/games.yaml", "{ metric: bookings }", "{ metric: revenue }", "'revenue' is not a metric"),
        ("contracts/games.yaml", "name: daily_agg", "name: all_days", "can't be merged"),
        ("contracts/games.yaml", "name: all_players", "name: players", "the name of a view of sql/views; rename one"),
        ("contracts/games.yaml", "name: archery_duel", "name: game", "table silver/game_events would have the name"),
        ("contracts/games.yaml", "name: all_players", "name: kpi_daily", "which the platform itself has too"),
        ("sql/views/gold/players.sql", "Metric('events')", "Metric('event')", "the contract has no Metric('event')"),
        ("sql/dbt/macros/metrics.sql", "{#-", "\n{#-", "run 'python -m tools.contracts --write'"),
        ("quality/rules/all_games.yaml", "severity: ", "sevrity: ", "unknown key 'sevrity'"),
        (
            "contracts/experiments.yaml",
            "primary: bookings",
            "primary: revenue",
            "'revenue' is not a metric of players' days",
        ),
        ("contracts/segments.yaml", "sessions >= 5", "visits >= 5", "uses 'visits', which is not a column of a player"),
        ("contracts/access.yaml", "users:", "user:", "unknown key 'user'"),
        ("contracts/schedule.yaml", "tasks:", "task:", "unknown key 'task'"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(copy: Path, file: str, old: str, new: str, problem: str) -> None:
    line = replace(copy / file, old, new)
    if problem == "can't be merged":
        line = replace(copy / file, "refresh: partition", "refresh: merge") + 3

    found = list(problems(copy))

    assert any(each.startswith(f"{copy / file}:{line}: ") and problem in each for each in found), found


def test_no_aggregate_can_have_the_name_of_a_table_that_it_is_not() -> None:
    tables = set(re.findall(r"^  (gold/[a-z_]+):$", (REPOSITORY / "contracts/games.yaml").read_text(), re.MULTILINE))

    assert tables | {PLAYER_STATE, MINUTES, SIGNALS} <= NO_AGGREGATES
