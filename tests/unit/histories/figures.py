"""All figures that are compared, each computed by brute force from the events that silver must have.

The list of compared figures stands here: `OF_A_GAME` and `OF_ALL_GAMES` have the gold tables and the views, each with
SQL over the events that is none of the platform's. The questions of sql/questions are asked of both sides.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa

from gamelake.contract.games import load_games
from gamelake.delta.appends import schema_of
from gamelake.delta.listing import table_names, table_paths
from gamelake.delta.tables import open_table
from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.gold_check import GoldCheck
from gamelake.serving.sql.dialects import Translator, names_in
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import as_of, load_questions
from gamelake.serving.sql.relations import Reads, Relations
from gamelake.serving.sql.views import load_views
from tests.support.kpi_answers import expected_kpis, in_order
from tests.unit.histories.events import GAMES, KART, NEWEST_SCHEMA, NOW, TODAY, Event, table_of
from tests.unit.histories.lakehouse import Lakehouse
from tests.unit.histories.model import SILVER, Model, Rows

VIEWS = load_views(Path("sql/views"), Path("contracts/games.yaml"))
# What these are about, no event of a history has.
_OTHER_QUESTIONS = (
    "dead_letters_by_reason late_events one_game_device_clocks one_game_errors one_game_offer_test one_game_products"
)
QUESTIONS = {
    name: each
    for name, each in load_questions(Path("sql/questions")).items()
    if each.is_portable and name not in _OTHER_QUESTIONS.split()
}
_COLUMNS = pa.schema(
    [
        ("event_date", pa.date32()),
        ("event_time", pa.timestamp("us")),
        ("event_name", pa.string()),
        ("game_name", pa.string()),
        ("gamer_id", pa.string()),
        ("session_id", pa.string()),
        ("platform", pa.string()),
        ("app_version", pa.string()),
        ("amount", pa.float64()),
        ("event_id", pa.string()),
        ("level", pa.int64()),
    ]
)
# What contracts/metrics.yaml says in words: test events don't count, a purchase has a price, a session is a player's.
_EVENTS = """
    CREATE OR REPLACE VIEW events AS SELECT *,
        event_date AS reporting_date,
        event_name IS DISTINCT FROM 'smoke_test' AS is_played,
        is_played AND event_name = 'session_start' AS is_start,
        is_played AND event_name = 'level_completed' AS is_level,
        is_played AND event_name = 'purchase' AND amount IS NOT NULL AS is_bought,
        CASE WHEN gamer_id IS NOT NULL AND session_id <> '' THEN (gamer_id, session_id) END AS session,
        list_transform(string_split(app_version, '.'), lambda part: CAST(part AS int)) AS version_order
    FROM rows
"""
_OF_A_PLAYER = """
    count(*) FILTER (is_start) AS session_count,
    count(*) FILTER (is_played) AS event_count,
    min(event_time) FILTER (is_played) AS min_timestamp,
    max(event_time) FILTER (is_played) AS max_timestamp,
    sum(amount) FILTER (is_bought) AS bookings
"""
# By name, in which {game} stands for the game's: what each relation of a game has, over the events of its own table.
OF_A_GAME: Mapping[str, str] = {
    "silver.{game}_events": "FROM events",
    "gold.{game}_player_agg": f"SELECT gamer_id, {_OF_A_PLAYER} FROM events GROUP BY ALL",  # noqa: S608 # a constant
    "gold.{game}_daily_agg": """
        SELECT event_date, platform, app_version,
            count(DISTINCT gamer_id) FILTER (is_played) AS players,
            count(DISTINCT session) FILTER (is_played) AS sessions,
            count(DISTINCT gamer_id) FILTER (is_bought) AS payers,
            sum(amount) FILTER (is_bought) AS bookings,
            median(amount) FILTER (is_bought) AS median_purchase
        FROM events GROUP BY ALL""",
}
# The same of all games, over the events of silver/events.
OF_ALL_GAMES: Mapping[str, str] = {
    "silver.events": "FROM events",
    "silver.game_events": "FROM events WHERE is_played",
    "silver.purchases": "FROM events WHERE is_bought",
    "gold.all_players": f"SELECT gamer_id, game_name, {_OF_A_PLAYER} FROM events GROUP BY ALL",  # noqa: S608 # a constant
    "gold.all_player_days": """
        SELECT event_date, game_name, gamer_id,
            count(*) FILTER (is_start) AS session_count,
            count(*) FILTER (is_played) AS event_count,
            count(*) FILTER (is_bought) AS purchase_count,
            sum(amount) FILTER (is_bought) AS bookings
        FROM events GROUP BY ALL""",
    "gold.all_sessions": """
        SELECT event_date, game_name, gamer_id, session_id,
            max(platform) AS platform,
            arg_max(app_version, version_order) AS app_version,
            min(event_time) FILTER (is_played) AS began,
            max(event_time) FILTER (is_played) AS ended,
            count(*) FILTER (is_played) AS event_count,
            count(*) FILTER (is_level) AS levels_completed,
            count(*) FILTER (is_bought) AS purchase_count,
            sum(amount) FILTER (is_bought) AS bookings
        FROM events GROUP BY ALL""",
    "gold.player_days": """
        SELECT event_date, game_name, gamer_id,
            count(*) FILTER (is_start) AS sessions_begun,
            count(*) AS events,
            count(*) FILTER (is_bought) AS purchases,
            coalesce(sum(amount) FILTER (is_bought), 0) AS bookings
        FROM events WHERE is_played AND gamer_id IS NOT NULL GROUP BY ALL""",
    "gold.players": """
        SELECT game_name, gamer_id,
            count(*) FILTER (is_start) AS sessions_begun,
            count(*) AS events,
            min(event_time) AS first_seen,
            max(event_time) AS last_seen,
            CAST(first_seen AS date) AS first_day,
            CAST(last_seen AS date) AS last_day,
            coalesce(sum(amount) FILTER (is_bought), 0) AS bookings
        FROM events WHERE is_played AND gamer_id IS NOT NULL GROUP BY ALL""",
    "gold.sessions": """
        SELECT event_date, game_name, session_id, gamer_id,
            max(platform) AS platform,
            arg_max(app_version, version_order) AS app_version,
            max(version_order) AS version_order,
            min(event_time) FILTER (is_played) AS began,
            max(event_time) FILTER (is_played) AS ended,
            date_diff('second', began, ended) / 60 AS minutes,
            count(*) FILTER (is_played) AS events,
            count(*) FILTER (is_level) AS levels_completed,
            count(*) FILTER (is_bought) AS purchases,
            coalesce(sum(amount) FILTER (is_bought), 0) AS bookings
        FROM events WHERE session IS NOT NULL GROUP BY ALL HAVING bool_or(is_played)""",
    "gold.players_per_day": """
        SELECT event_date, game_name,
            count(DISTINCT gamer_id) AS players,
            count(DISTINCT gamer_id) FILTER (is_bought) AS payers,
            count(DISTINCT session) AS sessions,
            count(*) FILTER (is_bought) AS purchases,
            coalesce(sum(amount) FILTER (is_bought), 0) AS bookings,
            coalesce(sum(amount) FILTER (is_bought), 0) / nullif(players, 0) AS arpdau
        FROM events WHERE is_played GROUP BY ALL""",
}
_VERSIONS = "gold.versions_per_day"
# The versions of one game, whose title is added.
_VERSIONS_OF_A_GAME = """
    SELECT event_date, platform, app_version, version_order,
        count(DISTINCT gamer_id) FILTER (is_played) AS players,
        count(DISTINCT gamer_id) FILTER (is_bought) AS payers,
        count(DISTINCT session) FILTER (is_played) AS sessions,
        coalesce(sum(amount) FILTER (is_bought), 0) AS bookings,
        median(amount) FILTER (is_bought) AS median_purchase
    FROM events WHERE platform IS NOT NULL AND app_version IS NOT NULL GROUP BY ALL"""


class BruteForce:
    """The relations of the events that silver must have, by DuckDB."""

    def __init__(self, model: Model) -> None:
        """Compute the relations of all tables."""
        self._connection = duckdb.connect(":memory:")
        self.names: list[str] = []
        versions = []
        for title, game in GAMES.items():
            if (rows := model.tables.get(table_of(title))) is not None:
                self._make(rows.values(), {name.format(game=game): sql for name, sql in OF_A_GAME.items()})
                of_game = self._connection.sql(_VERSIONS_OF_A_GAME).to_arrow_table()
                versions.append(of_game.append_column("game_name", pa.repeat(title, len(of_game))))
        if versions:
            self._connection.register(_VERSIONS, pa.concat_tables(versions))
            self.names.append(_VERSIONS)
        if SILVER in model.tables:
            self._make(model.tables[SILVER].values(), OF_ALL_GAMES)

    def _make(self, events: Iterable[Event], relations: Mapping[str, str]) -> None:
        self._connection.register("rows", _rows(events))
        self._connection.execute(_EVENTS)
        for name, sql in relations.items():
            self._connection.execute(f'CREATE TABLE "{name}" AS {sql}')
            self.names.append(name)

    def rows(self, name: str) -> pa.Table:
        return self._connection.table(f'"{name}"').to_arrow_table()

    def answer(self, sql: str) -> pa.Table:
        """The answer to a question over these relations."""
        schemas = tuple((name, self.rows(name).schema) for name in sorted(names_in(sql)))
        return self._connection.sql(_translated(sql, schemas)).to_arrow_table()

    def close(self) -> None:
        self._connection.close()


def check_silver(lake: Lakehouse, model: Model) -> None:
    """Compare each table of silver and each clone of one with the events that it must have, each once."""
    there: Mapping[str, Rows] = {table: {} for table in table_paths(lake.store) if table.startswith("silver/")}
    for table, rows in {**there, **model.tables, **model.clones}.items():
        _require_equal(table, open_table(lake.location, table).to_pyarrow_table(), _rows(rows.values()))


def check_figures(lake: Lakehouse, model: Model, questions: Collection[str] = ()) -> None:
    """Compare each gold table and view, and the answers to some questions, with the events that silver must have."""
    force, relations = BruteForce(model), Relations(table_names(lake.store), VIEWS, load_games(lake.games_file).games)
    for title, game in GAMES.items():
        if table_of(title) in model.tables and title not in {title for title, _ in model.held}:
            found = GoldCheck(lake.store, game).finding()
            assert found.status is CheckStatus.PASSED, found
    held = tuple(f"gold.{GAMES[title]}_" for title, _ in model.held)
    names = [name for name in force.names if not (name.startswith(held) or (held and name == _VERSIONS))]
    for name in names:
        if name in relations.tables:
            found = open_table(lake.location, name.replace(".", "/", 1)).to_pyarrow_table()
        else:
            sql = f"SELECT * FROM {name}"  # noqa: S608 # a view's name
            found = answer(sql, _reads(relations, sql), lake.location)
        _require_equal(name, found, force.rows(name))
    if SILVER in model.tables:
        _check_key_figures(lake, model.tables[SILVER].values())
    for question in questions:
        sql = as_of(QUESTIONS[question].sql, TODAY)
        # Only newer schemas have levels.
        if names_in(sql) <= set(names) and ("level" not in question or _has_levels(lake)):
            _require_equal(question, answer(sql, _reads(relations, sql), lake.location), force.answer(sql))
    force.close()


def _check_key_figures(lake: Lakehouse, events: Iterable[Event]) -> None:
    """Compare each table of KPIs with the events; which of them came late, the events don't say."""
    rows = _rows(events)
    rows = rows.append_column("ingest_time", pa.nulls(len(rows), pa.timestamp("us")))
    for name in ("country", "install_source"):
        rows = rows.append_column(name, pa.nulls(len(rows), pa.string()))
    for name, expected in expected_kpis(rows, NOW).items():
        if name != "kpi_late":
            found = open_table(lake.location, f"gold/{name}").to_pyarrow_table()
            # A key whose only events are the platform's own tests has a row without events.
            counted = [row for row in found.to_pylist() if row.get("events") != 0]
            columns = schema_of(open_table(lake.location, f"gold/{name}")).names
            assert in_order([tuple(row[column] for column in columns) for row in counted]) == expected, name


def _has_levels(lake: Lakehouse) -> bool:
    return "level" in schema_of(open_table(lake.location, table_of(KART))).names


@lru_cache(maxsize=1024)
def _reads(relations: Relations, sql: str) -> Reads:
    """What a question reads; histories ask the same ones again and again."""
    return relations.read_by(sql)


@lru_cache(maxsize=1024)
def _translated(sql: str, schemas: tuple[tuple[str, pa.Schema], ...]) -> str:
    """A question in DuckDB's words."""
    translator = Translator(QueryEngine.DUCKDB, str)
    for name, schema in schemas:
        translator.add_table(name, schema)
    return translator.question(sql)


def _require_equal(name: str, found: pa.Table, expected: pa.Table) -> None:
    """Compare the columns that both have; versions are ordered in each side's own way."""
    both = [column for column in expected.column_names if column in found.column_names and column != "version_order"]
    theirs, ours = (Counter(map(_plain, table.select(both).to_pylist())) for table in (found, expected))
    assert theirs == ours, f"{name}, {both}: too many {theirs - ours}, missing {ours - theirs}"


def _plain(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(_plain_value(value) for value in row.values())


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return round(float(value), 6) if isinstance(value, Decimal | float) else value


def _rows(events: Iterable[Event]) -> pa.Table:
    return pa.Table.from_pylist([_row(event) for event in events], _COLUMNS)


def _row(event: Event) -> Mapping[str, object]:
    play, time = event.play, event.time.replace(tzinfo=None)
    return {
        "event_date": time.date(),
        "event_time": time,
        "event_name": play.name,
        "game_name": play.game,
        "gamer_id": event.gamer,
        "session_id": play.session or None,
        "platform": play.platform,
        "app_version": play.version,
        "amount": play.amount,
        "event_id": event.id,
        "level": play.level if play.schema == NEWEST_SCHEMA else None,
    }
