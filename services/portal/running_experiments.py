"""The newest results of the running experiments."""

from collections.abc import Sequence
from dataclasses import dataclass

from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, QuestionReader
from services.portal.questions import QuestionResult

_MISMATCH = "sample_ratio_mismatch"

# 93 days find the first result of every running experiment: one lasts at most 92 days.
RUNNING_EXPERIMENTS = Question(
    name="running_experiments",
    title="How are the running experiments doing?",
    grain="one row per experiment and variant, at the end of the newest day",
    asked_by="analyst",
    reader=QuestionReader.PRODUCT_MANAGER,
    engines=frozenset(QueryEngine),
    sql="""WITH running AS (
    SELECT experiment, max(event_date) AS event_date, count(DISTINCT event_date) AS days
    FROM gold.experiment_results
    WHERE event_date > current_date - INTERVAL '93' DAY
    GROUP BY experiment
    HAVING max(event_date) >= current_date - INTERVAL '1' DAY
)
SELECT
    results.game,
    results.experiment,
    results.variant,
    results.metric,
    results.verdict,
    results.lift,
    results.low / nullif(results.control_mean, 0) AS low,
    results.high / nullif(results.control_mean, 0) AS high,
    results.players,
    results.control_players,
    running.days
FROM gold.experiment_results AS results
INNER JOIN running ON results.experiment = running.experiment AND results.event_date = running.event_date
WHERE results.role = 'primary' AND results.event_date > current_date - INTERVAL '3' DAY
ORDER BY results.experiment, results.variant
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """The newest result of a running experiment's primary metric, for one variant.

    Attributes:
        lift: the difference divided by the control's mean. It, `low` and `high` are None if unknown.
        players: the numbers of players of the variant and of the control.
        days: the number of days with results so far.
    """

    game: str
    experiment: str
    variant: str
    metric: str
    verdict: str
    lift: float | None
    low: float | None
    high: float | None
    players: tuple[int, int]
    days: int

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Low end, lift and high end; None if one is unknown or the variants are not comparable."""
        if self.verdict == _MISMATCH or self.lift is None or self.low is None or self.high is None:
            return None
        return self.low, self.lift, self.high


def results_of(result: QuestionResult | None) -> list[VariantResult]:
    """Return the results in the rows of `running_experiments`; an empty list if the question could not be run."""
    return [_result(row) for row in (() if result is None else result.rows)]


def _result(row: Sequence[object]) -> VariantResult:
    game, experiment, variant, metric, verdict = (str(each) for each in row[:5])
    lift, low, high = (None if each is None else float(str(each)) for each in row[5:8])
    players, control_players, days = (int(str(each or 0)) for each in row[8:11])
    return VariantResult(
        game=game,
        experiment=experiment,
        variant=variant,
        metric=metric,
        verdict=verdict,
        lift=lift,
        low=low,
        high=high,
        players=(players, control_players),
        days=days,
    )
