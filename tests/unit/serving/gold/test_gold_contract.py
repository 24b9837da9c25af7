"""Columns of gold tables name metrics; what can't be is an error with file and line when a job starts."""

from pathlib import Path

import pytest

from gamelake.model.errors import ContractError
from gamelake.serving.gold.contract import load_gold

METRICS = Path("contracts/metrics.yaml").read_text()
GAMES = """
games: [{name: archery, match: [Archery]}]
aggregates:
  - name: days
    over: all_games
    group_by: [event_date]
    refresh: merge
    columns:
      bookings: COLUMN
"""


@pytest.fixture
def games_file(tmp_path: Path) -> Path:
    (tmp_path / "metrics.yaml").write_text(METRICS)
    return tmp_path / "games.yaml"


def declare(games_file: Path, column: str) -> Path:
    games_file.write_text(GAMES.replace("COLUMN", column))
    return games_file


def test_a_column_has_the_sql_and_the_meaning_of_its_metric(games_file: Path) -> None:
    [days] = load_gold(declare(games_file, "{ metric: bookings }")).aggregates

    assert days.sql["bookings"].startswith("sum(CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE (event_name IS DISTINCT")
    assert days.descriptions["bookings"] == "what players paid, in US dollars"


def test_an_expression_of_ones_own_stays(games_file: Path) -> None:
    [days] = load_gold(declare(games_file, "sum(CAST(amount AS DECIMAL(18, 6)))")).aggregates

    assert days.sql == {"bookings": "sum(CAST(amount AS DECIMAL(18, 6)))"}


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("{ metric: revenue }", "'revenue' is not a metric of metrics.yaml; name one of: events, players"),
        ("{ metric: players }", "can't be merged"),
        ("{ metric: arpdau }", "can't be merged"),
        ("sum(price)", "reads 'price', which silver/events lacks"),
        ("amount", "must be one aggregate"),
        ("sum(", "is not a SQL expression"),
    ],
)
def test_an_impossible_column_is_an_error_with_file_and_line(games_file: Path, column: str, problem: str) -> None:
    with pytest.raises(ContractError) as raised:
        load_gold(declare(games_file, column))

    assert str(raised.value).startswith(f"{games_file}:9: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: payers", "name: players", "the name 'players' is there twice"),
        ("type_params: { measure: amount }", "type_params: { measure: cost }", "no measure 'cost'"),
        ("numerator: payers", "numerator: buyers", "must be a ratio of two simple metrics"),
        ("event__is_purchase", "event__is_gift", "'is_gift' is not a dimension"),
        ("agg_time_dimension: event_date", "agg_time_dimension: day", "'day' is not a dimension"),
        ("agg: sum", "agg: product", "Invalid enum value 'product'"),
        ("event__is_game_event", "event__is_played", "'is_played' is not a dimension"),
        (
            "expr: amount,",
            "expr: price,",
            'median(price) can\'t be computed from silver/events: Binder Error: Referenced column "price"',
        ),
        (
            "expr: event_name = 'session_start'",
            "expr: event_name",
            "event_name) is a VARCHAR; a metric can only be filtered by a boolean",
        ),
        ("{ name: platform,", "{ name: device,", "device can't be computed from silver/events"),
        ("expr: event_id,", "expr: event_id ||,", "can't be computed from silver/events: Parser Error"),
        ('filter: "{{ Dimension(', 'filter: "{{ Metric(', "Expected `str` matching regex"),
    ],
)
def test_a_metric_that_can_not_be_is_an_error_with_file_and_line(
    games_file: Path, old: str, new: str, problem: str
) -> None:
    metrics_file = games_file.with_name("metrics.yaml")
    assert old in METRICS
    metrics_file.write_text(METRICS.replace(old, new, 1))

    with pytest.raises(ContractError) as raised:
        load_gold(declare(games_file, "{ metric: bookings }"))

    assert str(raised.value).startswith(f"{metrics_file}:")
    assert problem in str(raised.value)


def test_a_wrong_metric_concerns_no_table_that_names_none(games_file: Path) -> None:
    games_file.with_name("metrics.yaml").write_text("semantic_models: 5")

    [days] = load_gold(declare(games_file, "count(*)")).aggregates

    assert days.sql == {"bookings": "count(*)"}


@pytest.mark.parametrize(
    ("keys", "line", "problem"),
    [
        ("{ hours: event_time }", 10, "the key 'hours' of the aggregate 'days' is not in group_by; add it there"),
        ("{ hour: max(event_time) }", 10, "must be an expression over one event"),
        ("{ hour: row_number() OVER () }", 10, "must be an expression over one event"),
        ("{ hour: date_trunc( }", 10, "the key 'hour' of the aggregate 'days' is not a SQL expression"),
        ("{ hour: 'date_trunc(''hour'', at)' }", 10, "the key 'hour' reads 'at', which silver/events lacks"),
        ("{ hour: event_time, event_date: event_time }", 10, "silver has a column 'event_date' already"),
        ("{}", 6, "silver/events has no column 'hour'; add the SQL that computes it under `keys`"),
    ],
)
def test_an_impossible_key_is_an_error_with_file_and_line(games_file: Path, keys: str, line: int, problem: str) -> None:
    declared = GAMES.replace("[event_date]", "[event_date, hour]").replace("COLUMN", "count(*)")
    games_file.write_text(declared + f"    keys: {keys}\n")
    assert declared.splitlines()[5] == "    group_by: [event_date, hour]"

    with pytest.raises(ContractError) as raised:
        load_gold(games_file)

    assert str(raised.value).startswith(f"{games_file}:{line}: ")
    assert problem in str(raised.value)
