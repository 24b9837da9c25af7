"""Writes oracle.json: what gbstats and spotify-confidence compute from some sums, for test_experiment_verdicts.

They need older packages than ours (NumPy 1, pandas 1), so that they run in an environment of their own:

    python3 -m venv build/oracle
    build/oracle/bin/pip install gbstats==0.8.0 spotify-confidence==4.1.0
    build/oracle/bin/python tests/unit/serving/experiments/oracle/make_oracle.py
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gbstats.frequentist.tests import SequentialConfig, SequentialTwoSidedTTest
from gbstats.models.statistics import RegressionAdjustedStatistic, SampleMeanStatistic, compute_theta
from scipy.stats import chisquare
from spotify_confidence import ZTest

FILE = Path(__file__).with_name("oracle.json")
_CASES = ((400, 500, 0.0, 0.6), (2_000, 1_900, 0.1, 0.9), (50, 70, 1.0, 0.0), (30_000, 10_000, 0.02, 0.5))


def sums(random: np.random.Generator, players: int, effect: float, memory: float) -> list[float]:
    """Return the six sums over the players of a variant."""
    before = random.exponential(2, players) * (random.random(players) < 0.3) if memory else np.zeros(players)
    after = random.exponential(2, players) * (random.random(players) < 0.3) + memory * before + effect
    return [
        float(players),
        *map(float, (after.sum(), (after**2).sum(), before.sum(), (before**2).sum(), (before * after).sum())),
    ]


def adjusted(control: list[float], variant: list[float], alpha: float) -> dict[str, float]:
    """Return gbstats's results with the adjustment for values before the exposure."""

    def statistic(each: list[float], theta: float = 0) -> RegressionAdjustedStatistic:
        n = int(each[0])
        return RegressionAdjustedStatistic(
            n=n,
            post_statistic=SampleMeanStatistic(n=n, sum=each[1], sum_squares=each[2]),
            pre_statistic=SampleMeanStatistic(n=n, sum=each[3], sum_squares=each[4]),
            post_pre_sum_of_products=each[5],
            theta=theta,
        )

    theta = float(compute_theta(statistic(control), statistic(variant)))
    config = SequentialConfig(alpha=alpha, difference_type="absolute")
    test = SequentialTwoSidedTTest(statistic(control, theta), statistic(variant, theta), config)
    low, high = test.confidence_interval
    return {
        "difference": float(test.point_estimate),
        "error": float(np.sqrt(test.variance)),
        "always_low": float(low),
        "always_high": float(high),
        "always_p": float(test.p_value),
    }


def plain(control: list[float], variant: list[float], alpha: float) -> dict[str, float]:
    """Return spotify-confidence's results, which ignore values before the exposure."""
    frame = pd.DataFrame(
        {
            "variant": ["control", "variant"],
            "n": [control[0], variant[0]],
            "total": [control[1], variant[1]],
            "squares": [control[2], variant[2]],
        }
    )
    test = ZTest(
        frame,
        numerator_column="total",
        numerator_sum_squares_column="squares",
        denominator_column="n",
        categorical_group_columns="variant",
        interval_size=1 - alpha,
    )
    row = test.difference("control", "variant").iloc[0]
    names = {"difference": "difference", "low": "ci_lower", "high": "ci_upper", "p_value": "p-value"}
    return {name: float(row[column]) for name, column in names.items()}


def main() -> None:
    """Compute all cases."""
    random, cases = np.random.default_rng(7), list[dict[str, Any]]()
    for players, others, effect, memory in _CASES:
        control, variant = sums(random, players, 0, memory), sums(random, others, effect, memory)
        for comparisons in (1, 4):
            alpha = 0.05 / comparisons
            case: dict[str, Any] = {"control": control, "variant": variant, "comparisons": comparisons}
            case |= {"gbstats": adjusted(control, variant, alpha), "spotify": plain(control, variant, alpha)}
            cases.append(case)
    ratios = [([480, 520], [0.5, 0.5]), ([4_000, 2_100, 1_900], [0.5, 0.25, 0.25]), ([10, 12, 9, 14], [0.25] * 4)]
    found = [{"players": n, "shares": s, "p": float(chisquare(n, np.array(s) * sum(n)).pvalue)} for n, s in ratios]
    FILE.write_text(json.dumps({"comparisons": cases, "sample_ratios": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
