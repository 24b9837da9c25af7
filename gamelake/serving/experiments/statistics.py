"""The statistics of experiments, from sums over players: intervals, tests and checks, as arrays of many comparisons.

Sources: CUPED, Deng et al. 2013, "Improving the Sensitivity of Online Controlled Experiments by Utilizing
Pre-Experiment Data", equations 4 and 5. Intervals that hold on all days together: Waudby-Smith et al., "Time-uniform
central limit theory and asymptotic confidence sequences", https://arxiv.org/abs/2103.06476v7, equations 9, 155, 161.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gamelake.model.arrays import Floats

# The share of false positives.
ALPHA = 0.05
# The power that `Comparison.detectable` is stated for.
POWER = 0.8
# The sequential interval is narrowest at about this number of players.
_TUNED_FOR = 5_000
_NORMAL = NormalDist()
_TAIL = np.frompyfunc(lambda z: math.erfc(abs(z) / math.sqrt(2)), 1, 1)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the players of one variant, in each of many experiments.

    Attributes:
        players: the number of players.
        total, total_squares: sums of their values, and of the squares.
        before, before_squares: the same of their values before the exposure.
        crossed: sum of the products of a player's values before and after.
    """

    players: Floats
    total: Floats
    total_squares: Floats
    before: Floats
    before_squares: Floats
    crossed: Floats

    def __add__(self, other: "Sums") -> "Sums":
        """Return the sums over the players of both variants."""
        return Sums(
            self.players + other.players,
            self.total + other.total,
            self.total_squares + other.total_squares,
            self.before + other.before,
            self.before_squares + other.before_squares,
            self.crossed + other.crossed,
        )

    @property
    def mean(self) -> Floats:
        """The mean value of a player, float64, one for each experiment."""
        return self.total / self.players

    def variance(self, slope: Floats) -> Floats:
        """Return the variance of a player's value minus `slope` times the value before: float64 each."""
        after = self._covariance(self.total_squares, self.total, self.total)
        earlier = self._covariance(self.before_squares, self.before, self.before)
        both = self._covariance(self.crossed, self.total, self.before)
        return after + slope**2 * earlier - 2 * slope * both

    @property
    def slope(self) -> Floats:
        """The slope of values after on values before, float64; 0 if players have no history."""
        earlier = self._covariance(self.before_squares, self.before, self.before)
        both = self._covariance(self.crossed, self.total, self.before)
        return np.divide(both, earlier, out=np.zeros_like(both), where=earlier > 0)

    def _covariance(self, products: Floats, first: Floats, second: Floats) -> Floats:
        return (products - first * second / self.players) / (self.players - 1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A variant compared with the control; NaN where a variant has less than two players or no variance.

    Attributes:
        difference: difference of the means, adjusted for the values before (CUPED).
        error: its standard error.
        low, high: the interval of one verdict, on a planned last day.
        p_value: of one verdict.
        always_low, always_high: the interval that holds on all days together.
        always_p: the p-value that holds on all days together.
        detectable: the difference that one verdict finds with a probability of `POWER`.
        variance_left: the share of the variance that the adjustment leaves.
    """

    difference: Floats
    error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    always_low: Floats
    always_high: Floats
    always_p: Floats
    detectable: Floats
    variance_left: Floats


def compare(control: Sums, variant: Sums, comparisons: int = 1) -> Comparison:
    """Compare a variant with the control.

    Args:
        control: the control's sums.
        variant: the variant's sums.
        comparisons: the number of comparisons in the experiment; all intervals and p-values are corrected for it
            (Bonferroni).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        slope, alpha = (control + variant).slope, ALPHA / comparisons
        difference = variant.mean - control.mean
        difference = difference - slope * (variant.before / variant.players - control.before / control.players)
        error, plain = (_error(control, variant, each) for each in (slope, np.zeros_like(slope)))
        quantile = _NORMAL.inv_cdf(1 - alpha / 2)
        p_value = np.asarray(_TAIL(difference / error), np.float64)
        width, always_p = _always(difference, error, control.players + variant.players, alpha)
        return Comparison(
            difference,
            error,
            difference - quantile * error,
            difference + quantile * error,
            np.minimum(1, p_value * comparisons),
            difference - width,
            difference + width,
            np.minimum(1, always_p * comparisons),
            (quantile + _NORMAL.inv_cdf(POWER)) * error,
            (error / plain) ** 2,
        )


def sample_ratio_p(players: Sequence[float], shares: Sequence[float]) -> float:
    """Return the probability of numbers of players that differ this much from the shares, by the chi-square test.

    Args:
        players: the players of each variant.
        shares: the share of each variant; together 1.
    """
    together = sum(players)
    if not together:
        return 1.0
    expected = [share * together for share in shares]
    return _chi_square_tail(sum((n - e) ** 2 / e for n, e in zip(players, expected, strict=True)), len(players) - 1)


def players_needed(effect: float, deviation: float, power: float = POWER, alpha: float = ALPHA) -> int:
    """Return the players that each of two variants needs, so that one verdict finds an effect this likely.

    Args:
        effect: the difference of the means to find.
        deviation: the standard deviation of a player's value.
        power: the probability.
        alpha: the share of false positives.
    """
    quantiles = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)
    return math.ceil(2 * (quantiles * deviation / effect) ** 2)


def _error(control: Sums, variant: Sums, slope: Floats) -> Floats:
    squared = control.variance(slope) / control.players + variant.variance(slope) / variant.players
    return np.sqrt(np.where(squared > 0, squared, np.nan))


def _always(difference: Floats, error: Floats, players: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return half the width of the interval that holds on all days together, and its p-value."""
    spread = -2 * math.log(alpha)
    scale = (spread + math.log(spread + 1)) / _TUNED_FOR
    grown = players * scale + 1
    width = error * np.sqrt(2 * grown * np.log(np.sqrt(grown) / alpha) / (players * scale))
    evidence = (difference / error) ** 2 * players * scale / (2 * grown)
    return width, np.minimum(1, np.sqrt(grown) * np.exp(-evidence))


def _chi_square_tail(value: float, degrees: int) -> float:
    """Return the probability of a chi-square variable above `value`: the incomplete gamma function, by recursion."""
    half = value / 2
    order, tail = (1.0, math.exp(-half)) if degrees % 2 == 0 else (0.5, math.erfc(math.sqrt(half)))
    while order < degrees / 2:
        if half > 0:
            tail += math.exp(order * math.log(half) - half - math.lgamma(order + 1))
        order += 1
    return tail
