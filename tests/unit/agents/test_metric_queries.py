"""Questions of agents for metrics, as SQL for Trino."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from gamelake.contract.metrics import load_metrics
from gamelake.model.errors import QuestionError
from services.agents.metric_queries import MetricQuestion, metric_query
from services.agents.statements import read_statement

METRICS = load_metrics(Path("contracts/metrics.yaml"))
GAMES = load_games(Path("contracts/games.yaml")).games
QUESTION = MetricQuestion(
    metric="players", dimensions=["platform", "event_date"], since=date(2026, 11, 1), until=date(2026, 11, 2)
)


def sql(question: MetricQuestion) -> str:
    return metric_query(question, METRICS, GAMES)


def test_a_question_is_grouped_by_its_dimensions_and_bounded_by_its_days() -> None:
    assert sql(replace(QUESTION, game="kart_rumble")) == (
        "SELECT platform AS platform, event_date AS event_date, "
        "count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test')) AS players "
        "FROM silver.game_events WHERE event_date BETWEEN DATE '2026-11-01' AND DATE '2026-11-02' "
        "AND game_name IN ('Kart Rumble') GROUP BY 1, 2 ORDER BY 1, 2"
    )


@pytest.mark.parametrize("metric", [metric.name for metric in METRICS.metrics])
def test_each_metric_by_all_dimensions_is_a_query_that_only_reads(metric: str) -> None:
    dimensions = [dimension.name for dimension in METRICS.events.dimensions]

    asked = sql(replace(QUESTION, metric=metric, dimensions=dimensions))

    assert read_statement(asked).sql == asked
    assert "median(" not in asked


def test_without_a_dimension_there_is_one_row() -> None:
    assert "GROUP BY" not in sql(replace(QUESTION, dimensions=[]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metric": "players; DROP TABLE silver.events"}, "there is no metric 'players; DROP"),
        ({"dimensions": ["platform, gamer_id"]}, "there is no dimension 'platform, gamer_id'; there are event_date"),
        ({"game": "x') OR ('1' = '1"}, "there is no game 'x'"),
        ({"since": date(2026, 12, 1)}, "since must not be later"),
    ],
)
def test_a_name_that_the_contract_lacks_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        sql(replace(QUESTION, **changed))  # type: ignore[arg-type] # fields by name
