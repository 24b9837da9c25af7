"""MetricFlow reads contracts/metrics.yaml as it is, and what it compiles has the figures that gold has."""

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import duckdb
import pytest

from gamelake.contract.metrics import MetricType, load_metrics
from gamelake.scans.sql_engine import without_zones
from gamelake.serving.sql.views import load_views
from tests.support.silver_events import BEGINNING, Event, as_rows
from tests.unit.serving.one_day import by_hand

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
PYTHON = REPOSITORY / "build/engines/bin/python"
METRICS = REPOSITORY / "contracts/metrics.yaml"
PLAYED = [
    Event(at=BEGINNING + timedelta(hours=hour), gamer=gamer, session=session, name=name, amount=amount)
    for hour, gamer, session, name, amount in (
        (1, "ann", "1", "session_start", None),
        (2, "bob", "1", "session_start", None),
        (3, "ann", "1", "purchase", 5.0),
        (4, "bob", "1", "purchase", None),
        (5, "eve", "", "subscription_renewed", 7.0),
        (6, "smoke", "", "smoke_test", None),
    )
]


@pytest.fixture
def compiled(missing_service: Callable[[str], NoReturn]) -> dict[str, str]:
    """The statement of each engine for all metrics, by day and game."""
    if not PYTHON.exists():
        missing_service("MetricFlow is not installed: run make engines")
    names = [each.name for each in load_metrics(METRICS).metrics]
    command = (str(PYTHON), "tests/support/metricflow_sql.py", str(METRICS), *names)
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    statements: dict[str, str] = json.loads(ran.stdout)
    return statements


def test_its_figures_are_those_of_the_contract(compiled: dict[str, str]) -> None:
    rows = as_rows(PLAYED)
    expected = {**by_hand(PLAYED), "conversion": 1 / 3, "arpdau": 5 / 3, "arppu": 5.0, "sessions_begun": 2}
    with duckdb.connect() as connection:
        connection.register("events", rows.cast(without_zones(rows.schema)))
        views = load_views(REPOSITORY / "sql/views", REPOSITORY / "contracts/games.yaml")
        [view] = (each.sql.replace("silver.events", "events") for each in views if each.name == "silver.game_events")
        connection.execute(f"CREATE SCHEMA silver; CREATE VIEW silver.game_events AS {view}")

        [found] = connection.sql(compiled["DuckDB"]).to_arrow_table().to_pylist()

    assert found["event__game_name"] == "Archery"
    assert {name: float(found[name]) for name in expected} == pytest.approx(expected)


def test_it_compiles_each_metric_for_trino(compiled: dict[str, str]) -> None:
    contract = load_metrics(METRICS)

    assert all(f"AS {each.name}" in compiled["Trino"] for each in contract.metrics)
    assert {each.type for each in contract.metrics} == set(MetricType)
