"""The statistics of experiments: false positives, power, and equality with gbstats and spotify-confidence.

`oracle/make_oracle.py` computed what those two say.
"""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from gamelake.model.arrays import Floats
from gamelake.serving.experiments.statistics import (
    ALPHA,
    POWER,
    Sums,
    compare,
    players_needed,
    sample_ratio_p,
)

ORACLE = json.loads((Path(__file__).parent / "oracle/oracle.json").read_text())
_EXPERIMENTS, _PLAYERS, _DAYS = 1_000, 1_000, 14
_NO_HISTORY = ("before", "before_squares", "crossed")


def of(numbers: list[float]) -> Sums:
    return Sums(*(np.array([number]) for number in numbers))


def values(random: np.random.Generator, players: int, memory: float = 0) -> tuple[Floats, Floats]:
    """Return what the players of many experiments paid before and after: most of them nothing."""
    shape = (_EXPERIMENTS, players)
    before = random.exponential(2, shape) * (random.random(shape) < 0.3)
    return before, random.exponential(2, shape) * (random.random(shape) < 0.3) + memory * before


def sums(before: Floats, after: Floats) -> Sums:
    players = np.full(len(after), float(after.shape[1]))
    return Sums(players, after.sum(1), (after**2).sum(1), before.sum(1), (before**2).sum(1), (before * after).sum(1))


@pytest.mark.parametrize("case", ORACLE["comparisons"])
def test_comparisons_equal_gbstats_and_spotify_confidence(case: dict[str, dict[str, float]]) -> None:
    comparisons = int(case["comparisons"])  # type: ignore[call-overload] # the one number among mappings
    control, variant = (of(case[name]) for name in ("control", "variant"))  # type: ignore[arg-type] # see above
    found = compare(control, variant, comparisons)
    # Those two leave the correction of p-values to their callers.
    wanted = case["gbstats"] | {"always_p": min(1, case["gbstats"]["always_p"] * comparisons)}
    assert {name: getattr(found, name)[0] for name in wanted} == pytest.approx(wanted, rel=1e-9, abs=1e-9)

    nothing = dict.fromkeys(_NO_HISTORY, np.zeros(1))
    found = compare(replace(control, **nothing), replace(variant, **nothing), comparisons)
    wanted = case["spotify"] | {"p_value": min(1, case["spotify"]["p_value"] * comparisons)}
    assert {name: getattr(found, name)[0] for name in wanted} == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", ORACLE["sample_ratios"])
def test_sample_ratios_equal_those_of_scipy(case: dict[str, list[float]]) -> None:
    assert sample_ratio_p(case["players"], case["shares"]) == pytest.approx(case["p"], rel=1e-9, abs=1e-12)


def test_one_in_twenty_of_a_thousand_a_a_experiments_is_a_false_positive() -> None:
    random = np.random.default_rng(11)

    found = compare(sums(*values(random, _PLAYERS, 0.5)), sums(*values(random, _PLAYERS, 0.5)))

    # Two standard deviations of a thousand experiments.
    assert np.mean(found.p_value < ALPHA) == pytest.approx(ALPHA, abs=0.014)
    assert np.array_equal(found.p_value < ALPHA, (found.low > 0) | (found.high < 0))


def test_a_verdict_on_every_day_adds_no_false_positives() -> None:
    random = np.random.default_rng(12)
    two = [values(random, _PLAYERS) for _ in range(2)]
    once, always = np.zeros(_EXPERIMENTS, bool), np.zeros(_EXPERIMENTS, bool)
    for day in range(1, _DAYS + 1):
        control, variant = (
            sums(*(part[:, : _PLAYERS * day // _DAYS] for part in before_and_after)) for before_and_after in two
        )
        found = compare(control, variant)
        once |= found.p_value < ALPHA
        always |= found.always_p < ALPHA

    assert np.mean(once) > 2 * ALPHA
    assert np.mean(always) <= ALPHA


def test_a_planted_effect_is_found_at_the_stated_power() -> None:
    random = np.random.default_rng(13)
    _, some = values(random, _PLAYERS)
    effect = 0.2
    players = players_needed(effect, float(some.std()))
    control, (before, after) = sums(*values(random, players)), values(random, players)

    found = compare(control, sums(before, after + effect))

    # Two standard deviations of a thousand experiments.
    assert np.mean((found.p_value < ALPHA) & (found.difference > 0)) == pytest.approx(POWER, abs=0.026)
    assert np.mean(found.detectable) == pytest.approx(effect, rel=0.02)


def test_intervals_hold_the_true_effect_in_nineteen_of_twenty_experiments() -> None:
    random = np.random.default_rng(14)
    control, (before, after) = sums(*values(random, _PLAYERS, 0.5)), values(random, _PLAYERS, 0.5)

    found = compare(control, sums(before, after + 0.3))

    assert np.mean((found.low < 0.3) & (found.high > 0.3)) == pytest.approx(1 - ALPHA, abs=0.014)
    assert np.mean((found.always_low < 0.3) & (found.always_high > 0.3)) >= 1 - ALPHA


def test_history_reduces_the_variance() -> None:
    random = np.random.default_rng(15)

    found = compare(sums(*values(random, _PLAYERS, 1.0)), sums(*values(random, _PLAYERS, 1.0)))

    # Half of the variance is that of the values before.
    assert np.mean(found.variance_left) == pytest.approx(0.5, abs=0.02)


def test_twenty_metrics_have_no_more_false_positives_than_one() -> None:
    random = np.random.default_rng(16)
    found = [compare(sums(*values(random, 200)), sums(*values(random, 200)), comparisons=20) for _ in range(20)]

    assert np.mean(np.any([each.p_value < ALPHA for each in found], axis=0)) == pytest.approx(ALPHA, abs=0.014)


def test_players_without_values_have_no_verdict() -> None:
    nothing = Sums(*(np.zeros(3) for _ in fields(Sums)))
    found = compare(replace(nothing, players=np.array([0.0, 1, 9])), replace(nothing, players=np.array([0.0, 1, 9])))

    assert np.isnan(found.p_value).all()
    assert np.isnan(found.always_p).all()
