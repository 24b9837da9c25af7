"""The number of players, sessions and bookings of a day is one answer, in each table, view, question and model."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import jinja2
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.metrics import load_metrics
from gamelake.scans.sql_engine import without_zones
from tests.support.silver_events import BEGINNING, Event, as_rows
from tests.unit.properties import examples
from tests.unit.serving.one_day import EVENTS, Day, Figures, by_hand

METRICS = load_metrics(Path("contracts/metrics.yaml"))
MODEL = METRICS.events


def dbt_model(name: str) -> str:
    text = "".join(Path("sql/dbt", file).read_text() for file in ("macros/metrics.sql", f"models/{name}.sql"))
    return str(jinja2.Template(text).render(source=lambda layer, table: f"{layer}.{table}"))


BY_METRICS = ", ".join(
    f"{METRICS.sql(METRICS.metric(name))} AS {name}"
    for name in ("events", "players", "sessions", "purchases", "payers", "bookings")
)


def grain_and_metrics(path: Path) -> tuple[Sequence[str], Mapping[str, str]]:
    """The columns that a row of a view is found by, and the metrics of its columns."""
    _, grain, *lines = path.read_text().splitlines()
    metrics = dict(re.findall(r"-- Column (\w+): \{\{ Metric\('(\w+)'\) \}\}", "\n".join(lines)))
    columns = re.findall(r"-- Column (\w+):", "\n".join(lines))
    return [name for name in columns if name not in metrics and name in re.split(r"\W", grain)], metrics


VIEWS = {
    f"gold.{path.stem}": found for path in Path("sql/views/gold").glob("*.sql") if (found := grain_and_metrics(path))[1]
}
PATHS = {
    "gold.players_per_day": "SELECT players, payers, sessions, purchases, bookings FROM gold.players_per_day",
    "gold.versions_per_day": "SELECT players, payers, sessions, bookings FROM gold.versions_per_day",
    "gold.<game>_daily_agg": "SELECT players, payers, sessions, bookings FROM gold.archery_daily_agg",
    "gold.player_days": """SELECT count(*) AS players, count(*) FILTER (WHERE purchases > 0) AS payers
        FROM gold.player_days""",
    "gold.players": "SELECT count(*) AS players, count(*) FILTER (WHERE bookings > 0) AS payers FROM gold.players",
    "gold.all_player_days": "SELECT sum(event_count) AS events, sum(bookings) AS bookings FROM gold.all_player_days",
    "gold.<game>_player_agg": """SELECT sum(event_count) AS events, sum(bookings) AS bookings
        FROM gold.archery_player_agg""",
    "gold.sessions": "SELECT count(*) AS sessions FROM gold.sessions",
    "silver.purchases": """SELECT count(*) AS purchases, count(DISTINCT gamer_id) AS payers, sum(amount) AS bookings
        FROM silver.purchases""",
    "silver.game_events": "SELECT count(*) AS events, count(DISTINCT gamer_id) AS players FROM silver.game_events",
    "gold.kpi_daily": """SELECT events, active_players AS players, sessions, purchases, payers, bookings
        FROM gold.kpi_daily""",
    "gold.kpi_hourly": """SELECT sum(events) AS events, sum(purchases) AS purchases, sum(bookings) AS bookings
        FROM gold.kpi_hourly""",
    "gold.kpi_active_players": "SELECT dau AS players, wau AS players_of_7_days FROM gold.kpi_active_players",
    "dbt's daily_games": dbt_model("daily_games"),
}


def of_events(events: Sequence[Event], sql: str) -> Sequence[Figures]:
    """What a statement over the table `silver` says of the events."""
    rows = as_rows(events)
    with duckdb.connect() as connection:
        connection.register("silver", rows.cast(without_zones(rows.schema)))
        found: list[dict[str, object]] = connection.sql(sql).to_arrow_table().to_pylist()
    return found


@examples(8)
@given(others=st.lists(EVENTS, max_size=12))
def test_each_table_view_and_model_has_the_figures_that_the_events_have(others: Sequence[Event]) -> None:
    # Without any player some tables don't exist yet.
    events = [Event(at=BEGINNING), *others]
    expected = {**by_hand(events)}
    expected["players_of_7_days"] = expected["players"]
    with TemporaryDirectory() as folder:
        day = Day(Path(folder), events)
        answers = {path: day.ask(sql) for path, sql in PATHS.items()}
        answers["metrics.yaml"] = of_events(events, f"SELECT {BY_METRICS} FROM silver")[0]  # noqa: S608
        for view, (keys, metrics) in VIEWS.items():
            check_columns(day, view, keys, metrics)

    for path, found in answers.items():
        figures = {name: value or 0 for name, value in found.items() if name in expected}
        assert figures == {name: expected[name] for name in figures}, path
        assert figures, path


def check_columns(day: Day, view: str, keys: Sequence[str], metrics: Mapping[str, str]) -> None:
    """Require that each column of a view that names a metric is the metric, for each row."""
    figures = ", ".join(f"{METRICS.sql(METRICS.metric(name))} AS {column}" for column, name in metrics.items())
    sql = f"SELECT {', '.join(keys)}, {figures} FROM silver GROUP BY ALL"  # noqa: S608
    expected = _by_keys(keys, of_events(day.events, sql))
    answered = _by_keys(keys, day.rows(f"SELECT {', '.join((*keys, *metrics))} FROM {view}"))  # noqa: S608

    assert {key: expected[key] for key in answered} == answered, view
    assert {key for key, row in expected.items() if all(key) and any(row.values())} <= answered.keys(), view


def _by_keys(keys: Sequence[str], rows: Sequence[Figures]) -> dict[tuple[object, ...], Figures]:
    """The other columns of each row, with 0 for null, by its keys."""
    return {
        tuple(row[key] for key in keys): {name: value or 0 for name, value in row.items() if name not in keys}
        for row in rows
    }


def test_no_view_and_no_model_states_a_condition_on_what_happened() -> None:
    stated = {path.stem for path in Path("sql").rglob("*.sql") if re.search(r"event_name\W+'", path.read_text())}

    # Questions that read what only the game's own table has; dbt's macros are generated.
    assert stated == {"metrics", *(f"one_game_{name}" for name in ("errors", "level_funnel", "offer_test", "products"))}
    [is_game_event] = (each.expr for each in MODEL.dimensions if each.name == "is_game_event")
    assert f"AND {is_game_event}" in Path("sql/questions/one_game_offer_test.sql").read_text()
