"""The first page has the figures of all games or of one; it waits for no query, and says what fails with the remedy."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.delta.listing import table_names
from gamelake.objects.store import Location, Store
from gamelake.serving.experiments.tables import RESULTS as RESULTS_TABLE
from gamelake.serving.players.tables import SEGMENTS
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.questions import Question
from gamelake.serving.sql.relations import Relations
from services.portal.charts import interval
from services.portal.figures import Level, Overview, StreamFigures
from services.portal.home import Home, alerts_tile, freshness_tile
from services.portal.portfolio import DAYS, GameDay, NoPortfolio, Portfolio, PortfolioReader, portfolio_of
from services.portal.questions import QuestionFailedError, QuestionResult
from services.portal.running_experiments import results_of
from services.portal.segment_sizes import SegmentSize, sizes_of
from services.portal.settings import QueryLimits
from services.portal.templates import PortalTemplates
from tests.support.eventually import eventually
from tests.unit.portal.portals import Elements

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TODAY, YESTERDAY = NOW.date(), NOW.date() - timedelta(days=1)
EVIL = "<script>alert(1)</script>"
COLUMNS = ("event_date", "game_name", "active_players", "bookings", "events")
ROWS = (
    (YESTERDAY, "Archery Duel", 900, 10.5, 5_000),
    ("2026-11-30", "Archery Duel", 1_000, 1_234.5, 40_000),
    (TODAY, EVIL, 234, None, 2_000),
)
PORTFOLIO = portfolio_of(QuestionResult(COLUMNS, ROWS, is_cut=False), NOW)
NO_FIGURES = Overview((), ())


def page(portfolio: Portfolio = PORTFOLIO, game: str = "", overview: Overview = NO_FIGURES) -> str:
    return Home(overview=overview, portfolio=portfolio, game=game).page(PortalTemplates())


def test_the_tiles_have_the_sums_of_today_and_their_course() -> None:
    text = page()

    for value in ("1,234", "$1,234", "42,000"):
        assert f'<p class="value">{value}</p>' in text
    assert "yesterday 900" in text
    sparks = [each["aria-label"] for each in Elements(text).all("svg") if each.get("class") == "spark"]
    assert sparks[0] == "Players today: the last 14 days, from 0 to 1,234"


def test_the_charts_have_a_title_and_a_description_and_each_game_leads_to_its_figures() -> None:
    elements = Elements(page())
    charts = [each for each in elements.all("svg") if each.get("class") == "chart"]
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]

    assert len(charts) == 5
    assert len(set(ids)) == len(ids)
    assert all(name in ids for each in charts for name in (each["aria-labelledby"] or "").split())
    assert {"/?game=Archery+Duel"} <= {link["href"] for link in elements.all("a")}


def test_one_game_by_choice_has_its_own_figures() -> None:
    text = page(game="Archery Duel")

    assert '<p class="value">1,000</p>' in text
    assert "<h1>Archery Duel</h1>" in text
    assert "<option selected>Archery Duel</option>" in text
    assert 'data-source="/tiles?game=Archery+Duel"' in text


def test_a_game_that_sends_nothing_is_named_with_a_way_back() -> None:
    assert 'has no events in these days. <a href="/">' in page(game="No Such Game")


def test_the_title_of_a_game_does_not_become_markup() -> None:
    for text in (page(), page(game=EVIL)):
        assert EVIL not in text
        assert [script["src"] for script in Elements(text).all("script")] == ["/portal.js"]


def test_each_day_of_the_period_is_there_although_nothing_happened() -> None:
    days = PORTFOLIO.by_day()

    assert list(days) == [TODAY - timedelta(days=DAYS - 1 - place) for place in range(DAYS)]
    assert days[TODAY - timedelta(days=5)] == GameDay()
    assert sum(each.events for each in PORTFOLIO.by_game().values()) == sum(each.events for each in days.values())


def test_without_tables_the_tiles_have_the_command_that_starts_the_platform() -> None:
    text = page(NoPortfolio().newest())

    assert text.count('data-copy="make dev RATE=200 GAMES=5"') == 3
    assert "The portal has no tables to read" in text


def test_a_reading_that_fails_is_on_the_tiles_with_its_remedy() -> None:
    failed = Portfolio({}, problem="Trino does not respond", remedy="compose/stack.sh restart trino")

    text = page(failed)

    assert text.count("Trino does not respond") == 4
    assert 'data-copy="compose/stack.sh restart trino"' in text


def test_figures_of_an_earlier_reading_stay_with_their_time() -> None:
    text = page(Portfolio(PORTFOLIO.days, NOW, "Trino does not respond"))

    assert '<p class="value">1,234</p>' in text
    assert "as of 12:00 UTC: Trino does not respond" in text


class Engine:
    """Runs the questions of the portfolio: how the games do with an outcome, the others with answers by their names."""

    def __init__(self, outcome: QuestionResult | Exception, **others: QuestionResult) -> None:
        self.outcome = outcome
        self.others = others
        self.asked = 0

    def __call__(self, question: Question, _limits: QueryLimits) -> QuestionResult:
        if question.name != "portfolio":
            if question.name not in self.others:
                raise QuestionFailedError("there is no such table", "")
            return self.others[question.name]
        self.asked += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_the_figures_are_read_in_the_background_and_again_after_a_minute() -> None:
    engine, now = Engine(QuestionResult(COLUMNS, (), is_cut=False)), [0.0]
    reader = PortfolioReader(engine, lambda: now[0])

    assert reader.newest().is_loading
    eventually(lambda: not reader.newest().is_loading)
    now[0] = 59
    assert len(reader.newest().days) == DAYS
    assert engine.asked == 1
    now[0] = 61
    reader.newest()
    eventually(lambda: engine.asked == 2)


def test_revenue_is_a_chart_of_its_own_and_without_rates_the_other_figures_are_there() -> None:
    played = QuestionResult(COLUMNS, ROWS, is_cut=False)
    earned = QuestionResult(
        ("event_date", "game_name", "revenue"), ((TODAY, "Archery Duel", 700.5), (TODAY, "Gone", 1.0)), is_cut=False
    )
    text = page(portfolio_of(played, NOW, earned))
    reader = PortfolioReader(Engine(played))
    reader.newest()
    eventually(lambda: not reader.newest().is_loading)

    assert "Revenue by day" in text
    assert "$700" in text
    assert "Revenue by day" not in page()
    assert (reader.newest().has_revenue, reader.newest().problem) == (False, "")


RESULTS = QuestionResult(
    ("game", "experiment", "variant", "metric", "verdict", "lift", "low", "high", "players", "control_players", "days"),
    (
        ("kart_rumble", "new_shop", "offer", "bookings", "higher", 0.12, 0.02, "0.22", 5_100, 4_900, 12),
        ("kart_rumble", "new_map", EVIL, "payers", "sample_ratio_mismatch", 0.5, -0.5, 1.5, 80, 20, 1),
    ),
    is_cut=False,
)


def test_running_experiments_have_their_verdicts_and_lifts_with_intervals() -> None:
    text = page(replace(PORTFOLIO, experiments=results_of(RESULTS)))

    assert '<td data-label="verdict" class="good">higher</td><td data-label="lift">+12.0%</td>' in text
    assert "+2.0% to +22.0%" in text
    assert "5,100 of 10,000" in text
    assert "player numbers don&#39;t match the shares" in text
    assert EVIL not in text
    [picture] = [each for each in Elements(text).all("svg") if each.get("class") == "interval"]
    assert picture["aria-label"] == "new_shop, offer: lift +12.0%, +2.0% to +22.0%"
    assert "Running experiments" not in page(replace(PORTFOLIO, experiments=results_of(RESULTS)), game="Archery Duel")


def test_a_lakehouse_without_experiments_shows_all_other_figures() -> None:
    played = QuestionResult(COLUMNS, ROWS, is_cut=False)
    for engine, count in ((Engine(played), 0), (Engine(played, running_experiments=RESULTS), 2)):
        reader = PortfolioReader(engine)
        reader.newest()
        eventually(lambda reader=reader: not reader.newest().is_loading)  # type: ignore[misc] # mypy's lambdas

        assert (len(reader.newest().experiments), reader.newest().problem) == (count, "")


SIZES = QuestionResult(
    ("game_name", "segment", "players"),
    (("Archery Duel", "at_risk", 1_200), ("Archery Duel", EVIL, 7), ("Bingo", "at_risk", 34), ("Bingo", "new", 0)),
    is_cut=False,
)


def test_the_segments_of_all_games_or_of_one_are_a_chart() -> None:
    text, of_one = (page(replace(PORTFOLIO, segments=sizes_of(SIZES)), game) for game in ("", "Archery Duel"))

    for shown, sizes in ((text, ("at_risk: 1,234", "new: 0")), (of_one, ("at_risk: 1,200",))):
        assert "Players by segment, now" in shown
        assert all(f"<title>{size.replace('_', ' ')}</title>" in shown for size in sizes)
        assert EVIL not in shown
    assert "new: 0" not in of_one
    assert "Players by segment" not in page()


def test_the_sizes_of_segments_are_read_from_their_table(tmp_path: Path) -> None:
    rows = [dict.fromkeys(SEGMENTS.schema.names) | {"game_name": "Bingo", "segment": "new", "players": 3}]
    write_deltalake(tmp_path / SEGMENTS.path, pa.Table.from_pylist(rows, SEGMENTS.schema))

    assert newest_of(tmp_path, "segment_sizes").segments == [SegmentSize("Bingo", "new", 3)]


def newest_of(lakehouse: Path, name: str) -> Portfolio:
    """Return the portfolio whose reader runs only the question `name`, on the tables of a lakehouse."""
    lake = Location(uri=lakehouse.as_uri())
    relations = Relations(table_names(Store(lake)), (), ())

    def run(question: Question, _limits: QueryLimits) -> QuestionResult:
        if question.name != name:
            return QuestionResult((), (), is_cut=False)
        found = answer(question.sql, relations.read_by(question.sql), lake)
        rows = tuple(tuple(row.values()) for row in found.to_pylist())
        return QuestionResult(tuple(found.column_names), rows, is_cut=False)

    reader = PortfolioReader(run)
    reader.newest()
    eventually(lambda: not reader.newest().is_loading)
    return reader.newest()


def result(day: date, experiment: str, role: str = "primary", **changes: object) -> dict[str, object]:
    """A row of gold's results of experiments."""
    row: dict[str, object] = dict.fromkeys(RESULTS_TABLE.schema.names)
    given = {"game": "kart_rumble", "experiment": experiment, "event_date": day, "metric": "bookings", "variant": "b"}
    figures = {"control_mean": 2.0, "lift": 0.5, "low": 0.5, "high": 1.5, "players": 10, "control_players": 20}
    return row | given | figures | {"role": role, "verdict": "higher"} | changes


def test_only_running_experiments_are_read_each_with_the_newest_day(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=number) for number in range(40)]
    rows = [
        *(result(day, "running") for day in days[:3]),
        result(days[0], "running", "guardrail"),
        result(days[1], "begins_later_than_utc", control_mean=0.0),
        *(result(day, "over") for day in days[30:]),
    ]
    table = RESULTS_TABLE
    write_deltalake(tmp_path / table.path, pa.Table.from_pylist(rows, table.schema), partition_by=[*table.partition_by])
    zero, running = newest_of(tmp_path, "running_experiments").experiments
    assert (running.experiment, running.interval, running.players, running.days) == (
        "running",
        (0.25, 0.5, 0.75),
        (10, 20),
        3,
    )
    assert (zero.experiment, zero.interval, zero.days) == ("begins_later_than_utc", None, 1)


def test_the_bar_of_an_interval_ends_at_the_charts_end_and_has_a_line_at_0() -> None:
    picture = Elements(str(interval(-3.0, 0.5, 0.5, 1.0, "x")))

    [bar], [zero], [value] = picture.all("rect"), picture.all("line"), picture.all("circle")
    assert (bar["x"], bar["width"], zero["x1"], value["cx"]) == ("2.0", "87.0", "60.0", "89.0")


@pytest.mark.parametrize("error", [QuestionFailedError("no Trino", "restart it"), ValueError("a bug")])
def test_an_error_of_the_reading_ends_the_waiting(error: Exception) -> None:
    reader = PortfolioReader(Engine(error))

    reader.newest()

    eventually(lambda: reader.newest().problem != "")
    assert str(error) in reader.newest().problem
    assert reader.newest().remedy == getattr(error, "remedy", "")


def stream(name: str, seconds: float | None) -> StreamFigures:
    return StreamFigures(stream=name, is_up=True, seconds_behind=seconds)


@pytest.mark.parametrize(
    ("seconds", "level", "value"),
    [
        (4, Level.GOOD, "4.0 s"),
        (60, Level.GOOD, "1 min"),
        (61, Level.LATE, "1 min 1 s"),
        (1_067.8, Level.BAD, "17 min 48 s"),
    ],
)
def test_the_tile_of_freshness_is_of_the_stream_that_is_furthest_behind(
    seconds: float, level: Level, value: str
) -> None:
    tile = freshness_tile(Overview((), (stream("a", 1), stream("b", seconds), stream("c", None)), freshness=(1.0, 2.0)))

    assert (tile.level, tile.value) == (level, value)
    assert tile.note.startswith("b ")
    assert "at most 2.0 s" in tile.spark_title


ALERTS: Mapping[str, tuple[Overview, str, Level, str]] = {
    "none": (Overview((), (), alerts=()), "0", Level.GOOD, ""),
    "one": (Overview((), (), alerts=("GatewayDown",)), "1", Level.BAD, ""),
    "without Prometheus": (Overview((), ()), "unknown", Level.PLAIN, "make up"),
    "Prometheus away": (Overview((), (), "away", remedy="restart it"), "unknown", Level.LATE, "restart it"),
}


@pytest.mark.parametrize("case", ALERTS)
def test_the_tile_of_the_alerts_counts_them_or_says_why_they_are_unknown(case: str) -> None:
    overview, value, level, remedy = ALERTS[case]
    tile = alerts_tile(overview)

    assert (tile.value, tile.level, tile.remedy) == (value, level, remedy)
