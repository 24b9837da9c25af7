"""Turns a question for a metric into SQL for Trino, by the metrics contract."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from gamelake.contract.games import GameSpec
from gamelake.contract.metrics import MetricsContract
from gamelake.model.errors import QuestionError

# Trino has no exact median.
_MEDIAN = re.compile(r"\bmedian\(([^()]+)\)")
_GAME = "game_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricQuestion:
    """A metric of the days from `since` to `until`, both included, for each value of the dimensions.

    Attributes:
        game: the name of a game in contracts/games.yaml; empty: all games that the user may read.
    """

    metric: str
    dimensions: Sequence[str]
    since: date
    until: date
    game: str = ""


def metric_query(question: MetricQuestion, contract: MetricsContract, games: Sequence[GameSpec]) -> str:
    """Return the SQL of a question.

    Raises:
        QuestionError: the contract has no such metric, dimension or game, or the days are in the wrong order.
    """
    metrics = {metric.name: metric for metric in contract.metrics}
    dimensions = {dimension.name: dimension.sql for dimension in contract.events.dimensions}
    metric = metrics[known("metric", question.metric, metrics)]
    names = list(dict.fromkeys(known("dimension", name, dimensions) for name in question.dimensions))
    if question.since > question.until:
        raise QuestionError(f"since is {question.since} and until {question.until}; since must not be later")
    columns = [
        *(f"{dimensions[name]} AS {name}" for name in names),
        f"{_trinos(contract.sql(metric))} AS {metric.name}",
    ]
    day = contract.events.defaults.agg_time_dimension
    conditions = [f"{day} BETWEEN DATE '{question.since}' AND DATE '{question.until}'"]
    if question.game:
        by_name = {game.name: game for game in games}
        titles = by_name[known("game", question.game, by_name)].match
        conditions.append(f"{_GAME} IN ({', '.join(map(_literal, titles))})")
    numbers = ", ".join(str(number + 1) for number in range(len(names)))
    grouped = f" GROUP BY {numbers} ORDER BY {numbers}" if names else ""
    return (
        f"SELECT {', '.join(columns)} FROM {contract.events.model} "  # noqa: S608 # all parts are the contract's
        f"WHERE {' AND '.join(conditions)}{grouped}"
    )


def known(kind: str, name: str, names: Mapping[str, object]) -> str:
    """Return a name that exists.

    Raises:
        QuestionError: it does not; the message has those that do.
    """
    if name not in names:
        raise QuestionError(f"there is no {kind} '{name}'; there are {', '.join(names)}")
    return name


def _trinos(expression: str) -> str:
    return _MEDIAN.sub(r"approx_percentile(\1, 0.5)", expression)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
