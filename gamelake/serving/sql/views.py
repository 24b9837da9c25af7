"""The views of `sql/views`: one file each, with the meaning of each column; a view over all games is written for one.

A view refers to the metrics contract with MetricFlow's `{{ Metric('players') }}` and
`{{ Dimension('event__platform') }}`, and to the money contract with `{{ Money('store_fee') }}`. In a comment, the
placeholder becomes the description; in the statement, the SQL. `{{ ReportingDate('event_time') }}` is the day of a time
in the zone of the row's game.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.contract.games import GameSpec, load_games
from gamelake.contract.located_yaml import declaration
from gamelake.contract.metrics import METRICS_FILE, MetricTerm, load_metrics
from gamelake.contract.money import MONEY_FILE, load_money
from gamelake.model.errors import QuestionError
from gamelake.serving.sql.dialects import columns_of, names_in
from gamelake.serving.sql.funnels import COLUMNS, FUNNELS_FILE, GAME_EVENTS, funnel_sql, load_funnels

_COLUMN = re.compile(r"^-- Column ([a-z][a-z0-9_]*): (.+)$", re.MULTILINE)
_GRAIN, _FOR_EACH_GAME = "-- Grain: ", "-- For each game:"
_COMMENT = "-- "
_PLACEHOLDER = re.compile(r"\{\{ *(.*?) *\}\}")
# The columns whose day in the game's zone a view may have.
_TIMES = ("event_time", "min_timestamp", "max_timestamp", "begins_at", "ends_at", "cancelled_at")
_REPORTING_DAY = "the day in the game's time zone"
_GAME, _GAME_NAME = "{game}", "'{game_name}'"
# Any name is good enough to parse a statement that is written for one game.
_ANY_GAME = "any_game"


@dataclass(frozen=True, slots=True)
class View:
    """A view.

    Attributes:
        name: `schema.view`.
        comment: the view's description and grain.
        columns: the name and the meaning of each column, in the file's order.
        sql: the statement without comments; it has `{game}` if it is written for one game.
    """

    name: str
    comment: str
    columns: tuple[tuple[str, str], ...]
    sql: str

    @property
    def is_for_each_game(self) -> bool:
        """True if the view is a UNION ALL of one statement per game."""
        return _GAME in self.sql

    def undescribed(self) -> set[str]:
        """Return the columns without a description, and the described columns that don't exist."""
        return set(columns_of(self.sql.replace(_GAME, _ANY_GAME))) ^ {name for name, _ in self.columns}

    def over(self, games: Sequence[GameSpec], there: Collection[str]) -> str | None:
        """Return the view's statement over existing tables and views, or None if one that it needs is missing.

        Args:
            games: the games of the contract. A view for each game leaves out the games whose tables are missing.
            there: the tables and views that exist, as `schema.name`.
        """
        if not self.is_for_each_game:
            return self.sql if names_in(self.sql) <= set(there) else None
        parts = [sql for sql in (self._of(game) for game in games) if names_in(sql) <= set(there)]
        return "\nUNION ALL\n".join(parts) or None

    def _of(self, game: GameSpec) -> str:
        # A literal has the type varchar(<its length>), and a longer title would change the type of the view's column:
        # Trino then refuses views over this one.
        title = f"CAST('{game.game_name.replace(chr(39), chr(39) * 2)}' AS varchar)"
        return self.sql.replace(_GAME_NAME, title).replace(_GAME, game.name)


def load_views(folder: Path, games_file: Path) -> tuple[View, ...]:
    """Load the views under a folder, `<schema>/<view>.sql` and its funnels, each after those that it reads.

    Args:
        folder: the folder of the views.
        games_file: the games contract; the metrics contract is in the same folder.

    Raises:
        ContractError: one of the contracts or a funnel is wrong; names file and line.
        QuestionError: the first lines of a file are malformed, it refers to an unknown metric or dimension, or views
            read each other in a circle.
    """
    metrics, money = load_metrics(games_file.with_name(METRICS_FILE)), load_money(games_file.with_name(MONEY_FILE))
    zones = load_games(games_file).zones
    days = {_reporting(column): MetricTerm(_REPORTING_DAY, zones.trino_sql(column)) for column in _TIMES}
    terms = {**metrics.terms, **money.terms, **days}
    views = {view.name: view for view in (_load(path, terms) for path in sorted(folder.glob("*/*.sql")))}
    views |= {view.name: view for view in _funnels(folder / FUNNELS_FILE, games_file, views)}
    ordered: list[View] = []
    while len(ordered) < len(views):
        done = {view.name for view in ordered}
        ready = [view for view in views.values() if view.name not in done and not _reads(view, views) - done]
        if not ready:
            raise QuestionError(f"views of {folder} read each other: {', '.join(sorted(set(views) - done))}")
        ordered += ready
    return tuple(ordered)


def _reporting(column: str) -> str:
    return f"ReportingDate('{column}')"


def _funnels(path: Path, games_file: Path, views: Mapping[str, View]) -> Iterator[View]:
    if not path.exists():
        return
    events = frozenset(name for name, _ in views[GAME_EVENTS].columns) if GAME_EVENTS in views else frozenset()
    for funnel in load_funnels(path, games_file, events):
        comment = f"{funnel.description} Grain: one row per event_date, game_name, app_version and step."
        yield View(f"gold.funnel_{funnel.name}", comment, tuple(COLUMNS.items()), funnel_sql(funnel))


def _reads(view: View, views: Collection[str]) -> set[str]:
    return {name for name in names_in(view.sql.replace(_GAME, _ANY_GAME)) if name in views}


@declaration
def _load(path: Path, terms: Mapping[str, MetricTerm]) -> View:
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(_with_terms(line, terms, f"{path}:{number}") for number, line in enumerate(lines, 1))
    first, grain, *_ = [*text.splitlines(), "", ""]
    columns = tuple(_COLUMN.findall(text))
    if not first.startswith(_COMMENT) or not grain.startswith(_GRAIN) or not columns:
        raise QuestionError(
            f"{path}: it must open with its description, '{_GRAIN}' and a '-- Column name: meaning' for each"
        )
    sql = "\n".join(line for line in text.splitlines() if not line.startswith(_COMMENT))
    if (_GAME in sql) != (_FOR_EACH_GAME in text):
        raise QuestionError(f"{path}: a view for each game has '{_FOR_EACH_GAME}' above and {_GAME} in its statement")
    comment = f"{first.removeprefix(_COMMENT)} {grain.removeprefix(_COMMENT)}"
    return View(f"{path.parent.name}.{path.stem}", comment, columns, sql)


def _with_terms(line: str, terms: Mapping[str, MetricTerm], place: str) -> str:
    """Replace the placeholders of a line: in a comment by the term's meaning, in the statement by its SQL."""

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in terms:
            raise QuestionError(f"{place}: the contract has no {found[1]}; it has {', '.join(terms)}")
        return terms[found[1]].meaning if line.startswith(_COMMENT) else terms[found[1]].sql

    return _PLACEHOLDER.sub(replaced, line)
