"""The tables of experiments: their columns, and the meaning of each."""

from collections.abc import Mapping

import pyarrow as pa

from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.delta.declared_table import DeclaredTable
from gamelake.serving.kpis.tables import MONEY

_DAY, _COUNT, _TEXT, _NUMBER = pa.date32(), pa.int64(), pa.string(), pa.float64()
_GAME = (_TEXT, "the game's name in contracts/games.yaml")
_EXPERIMENT = (_TEXT, "the experiment's name in contracts/experiments.yaml")
_VARIANT = (_TEXT, "the variant that the player met")
_OF_A_METRIC = {
    "game": _GAME,
    "experiment": _EXPERIMENT,
    "event_date": (_DAY, "the last day that counts, in the game's time zone"),
    "metric": (_TEXT, "the metric's name in contracts/metrics.yaml"),
}

STATISTICS = DeclaredTable(
    "experiment_statistics",
    "Sums over the players of each variant of an experiment, from its start to the end of each day.",
    (*_OF_A_METRIC, "variant"),
    {
        **_OF_A_METRIC,
        "variant": (_TEXT, "the variant"),
        "players": (_COUNT, "players who met only this variant"),
        "total": (_NUMBER, "sum of the players' values after their first exposure"),
        "total_squares": (_NUMBER, "sum of the squares of these values"),
        "before": (_NUMBER, "sum of the players' values in the 14 days before the day of their first exposure"),
        "before_squares": (_NUMBER, "sum of the squares of these values"),
        "crossed": (_NUMBER, "sum of the products of each player's values before and after"),
        "excluded": (_COUNT, "players of the experiment who met more than one variant, and count in none"),
    },
    partition_by=("game", "experiment"),
)

RESULTS = DeclaredTable(
    "experiment_results",
    "A variant compared with the control, on each day. Intervals and p-values are corrected for all comparisons.",
    (*_OF_A_METRIC, "variant"),
    {
        **_OF_A_METRIC,
        "variant": (_TEXT, "the variant that is compared with the control"),
        "role": (_TEXT, "primary or guardrail"),
        "verdict": (_TEXT, "higher, lower, harmed (a guardrail), undecided, or sample_ratio_mismatch"),
        "players": (_COUNT, "players of the variant"),
        "control_players": (_COUNT, "players of the control"),
        "mean": (_NUMBER, "mean value of a player of the variant"),
        "control_mean": (_NUMBER, "mean value of a player of the control"),
        "difference": (_NUMBER, "difference of the means, adjusted for the values before the exposure (CUPED)"),
        "lift": (_NUMBER, "difference for each unit of control_mean"),
        "low": (_NUMBER, "lower end of the difference's interval, which holds on all days together"),
        "high": (_NUMBER, "upper end of this interval"),
        "p_value": (_NUMBER, "p-value that holds on all days together"),
        "final_low": (_NUMBER, "lower end of the narrower interval, which holds once, on a planned last day"),
        "final_high": (_NUMBER, "upper end of this interval"),
        "final_p_value": (_NUMBER, "p-value of one verdict, on a planned last day"),
        "detectable": (_NUMBER, "the difference that one verdict finds with a probability of 80 %"),
        "variance_left": (_NUMBER, "share of the variance that the adjustment leaves"),
        "sample_ratio_p": (_NUMBER, "probability of numbers of players that differ this much from the shares"),
        "excluded": (_COUNT, "players who met more than one variant, and count in none"),
    },
    partition_by=("game", "experiment"),
)


def exposure_table(columns: Mapping[str, str]) -> DeclaredTable:
    """Return the table of exposures.

    Args:
        columns: the meaning of each outcome, by its column in gold's player days.
    """
    return DeclaredTable(
        "experiment_exposures",
        "A day on which a player met a variant of an experiment, and what the player did on the rest of the day.",
        ("event_date", "game", "experiment", "variant", "gamer_id"),
        {
            "event_date": (_DAY, "the day in the game's time zone; a condition on it decides which files are read"),
            "game": _GAME,
            "experiment": _EXPERIMENT,
            "variant": _VARIANT,
            "gamer_id": (_TEXT, "who, by pseudonym; the same for one player of one game"),
            "exposed_at": (MICROSECONDS_UTC, "the first exposure of the day"),
            **{name: (MONEY, f"{meaning}, of the day's events after exposed_at") for name, meaning in columns.items()},
        },
        partition_by=("event_date", "game"),
    )
