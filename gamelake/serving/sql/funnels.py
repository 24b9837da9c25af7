"""Turns each declared funnel into a view in Trino's SQL, which the other engines translate as any view.

An entry is the first event of a day that matches the first step, for each player or session and version. It reaches a
step with the earliest event that matches the step, is later than the event of the step before, and is not later than
the entry plus the funnel's time. So one event is never two steps, and an event at the same microsecond is not later.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.contract.funnels import FunnelsContract, FunnelSpec, FunnelStep, FunnelUnit
from gamelake.contract.games import load_games
from gamelake.contract.located_yaml import Problem, declaration, load_declaration, raise_first

FUNNELS_FILE = "funnels.yaml"
GAME_EVENTS = "silver.game_events"
COLUMNS = {
    "event_date": "the day of the first step, in UTC",
    "game_name": "the title, as the game spells it",
    "app_version": "the game's version at the first step",
    "version_order": "orders versions: 1.9 before 1.10, a pre-release before its release",
    "step": "the step's number, from 1",
    "step_name": "the step's name in sql/views/funnels.yaml",
    "entered": "how many reached the first step",
    "reached_before": "how many reached the step before; of the first step, how many entered",
    "reached": "how many reached the step",
}
_KEYS = {FunnelUnit.PLAYER: ("gamer_id",), FunnelUnit.SESSION: ("gamer_id", "session_id")}
_ENTRY = ("event_date", "game_name", "app_version")
_DAY = timedelta(days=1)
_VERSION_ORDER = "regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.'"


@declaration
def load_funnels(path: Path, games_file: Path, columns: frozenset[str]) -> tuple[FunnelSpec, ...]:
    """Read and check the funnels.

    Args:
        path: the file of the funnels.
        games_file: the games contract.
        columns: the columns of `silver.game_events`.

    Raises:
        ContractError: a key is unknown, a value is impossible, a name is there twice, a game is not in the contract, or
            a condition is not one over the events' columns; names file and line.
    """
    contract, document = load_declaration(path, FunnelsContract)
    games = {each.name for each in load_games(games_file).games}
    raise_first([*_wrong_names(contract, games), *_wrong_conditions(contract, columns)], document)
    return contract.funnels


def _wrong_names(contract: FunnelsContract, games: set[str]) -> Iterator[Problem]:
    names = [funnel.name for funnel in contract.funnels]
    for number, funnel in enumerate(contract.funnels):
        place = f"$.funnels[{number}]"
        if funnel.name in names[:number]:
            yield f"{place}.name", f"the name '{funnel.name}' is there twice; rename one"
        if funnel.game and funnel.game not in games:
            yield (
                f"{place}.game",
                f"'{funnel.game}' is not a game of games.yaml; name one, or leave it out for all games",
            )
        steps = [step.name for step in funnel.steps]
        for index, name in enumerate(steps):
            if name in steps[:index]:
                yield f"{place}.steps[{index}].name", f"the step '{name}' is there twice; rename one"


def _wrong_conditions(contract: FunnelsContract, columns: frozenset[str]) -> Iterator[Problem]:
    for number, funnel in enumerate(contract.funnels):
        for index, step in enumerate(funnel.steps):
            known = frozenset() if funnel.game else columns
            if step.where and (problem := _wrong_condition(step.where, known)):
                yield f"$.funnels[{number}].steps[{index}].where", problem


def _wrong_condition(where: str, columns: frozenset[str]) -> str:
    """Describe the fault of a condition; "" if it has none. Without `columns`, a game's table may have any."""
    try:
        tree = sqlglot.parse_one(where, dialect="trino")
    except SqlglotError:
        return f"{where} is not a condition in Trino's SQL"
    if tree.find(exp.Query, exp.AggFunc, exp.Window, exp.Command) is not None:
        return f"{where} must be a condition over one event"
    unknown = sorted({str(column.parts[0].name) for column in tree.find_all(exp.Column)} - columns) if columns else []
    if not unknown:
        return ""
    return f"{where} reads '{unknown[0]}', which {GAME_EVENTS} lacks; its columns are {', '.join(sorted(columns))}"


def funnel_sql(funnel: FunnelSpec) -> str:
    """Return the statement of a funnel's view, with the columns of `COLUMNS`."""
    parts = [f"step_1 AS ({_first(funnel)})"]
    parts += [f"step_{number} AS ({_next(funnel, number)})" for number in range(2, len(funnel.steps) + 1)]
    names = " UNION ALL ".join(
        f"SELECT {number} AS step, '{step.name}' AS step_name" for number, step in enumerate(funnel.steps, 1)
    )
    reached, before = (
        " ".join(f"WHEN step = {number} THEN at_{max(number - back, 1)}" for number in range(1, len(funnel.steps) + 1))
        for back in (0, 1)
    )
    entry = ", ".join(_ENTRY)
    return f"""WITH {", ".join(parts)},
steps AS ({names})
SELECT {entry}, {_VERSION_ORDER} AS version_order, step, step_name,
    count(*) AS entered, count(CASE {before} END) AS reached_before, count(CASE {reached} END) AS reached
FROM step_{len(funnel.steps)} CROSS JOIN steps
GROUP BY {entry}, step, step_name"""  # noqa: S608 # the contract's SQL


def _first(funnel: FunnelSpec) -> str:
    keys = ", ".join((*_ENTRY, *_KEYS[funnel.by]))
    return f"SELECT {keys}, min(event_time) AS at_1 FROM {_matching(funnel, funnel.steps[0])} entry GROUP BY {keys}"  # noqa: S608 # see above


def _next(funnel: FunnelSpec, number: int) -> str:
    keys = [*_ENTRY, *_KEYS[funnel.by], *(f"at_{earlier}" for earlier in range(1, number))]
    columns = ", ".join(f"entry.{key}" for key in keys)
    same = " AND ".join(f"later.{key} = entry.{key}" for key in ("game_name", *_KEYS[funnel.by]))
    seconds = funnel.window // timedelta(seconds=1)
    days = -(-funnel.window // _DAY)
    return f"""SELECT {columns}, min(later.event_time) AS at_{number}
        FROM step_{number - 1} entry LEFT JOIN {_matching(funnel, funnel.steps[number - 1])} later
          ON {same} AND later.event_date >= entry.event_date
          AND later.event_date <= entry.event_date + INTERVAL '{days}' DAY
          AND later.event_time > entry.at_{number - 1}
          AND later.event_time <= entry.at_1 + INTERVAL '{seconds}' SECOND
        GROUP BY {columns}"""  # noqa: S608 # see above


def _matching(funnel: FunnelSpec, step: FunnelStep) -> str:
    """Return the events of a step, as a relation."""
    conditions = [f"event_name = '{step.event}'", "gamer_id IS NOT NULL", *([f"({step.where})"] if step.where else [])]
    if funnel.by is FunnelUnit.SESSION:
        conditions.append("session_id <> ''")
    source = f"silver.{funnel.game}_events" if funnel.game else GAME_EVENTS
    columns = ", ".join((*_ENTRY, *_KEYS[funnel.by], "event_time"))
    return f"(SELECT {columns} FROM {source} WHERE {' AND '.join(conditions)})"  # noqa: S608 # see above
