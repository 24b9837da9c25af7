"""Figures of a long run by its tenths, and whether they rise."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

TENTHS = 10
_GROUPS = 100


def by_tenth(values: Sequence[float], figure: Callable[[Any], float]) -> list[float]:
    """A figure of each tenth of the values."""
    return [float(figure(tenth)) for tenth in np.array_split(np.asarray(values), min(TENTHS, len(values)))]


def rise(values: Sequence[float]) -> float:
    """Rise of a straight line through the values, from the first to the last, in per cent of their mean."""
    figures = np.asarray(values, float)
    if not figures.mean():
        return 0.0
    by_step, _ = np.polyfit(np.linspace(0, 1, len(figures)), figures, 1)
    return float(by_step / figures.mean() * 100)


def slope(values: Sequence[float]) -> float:
    """The rise of a run's values after its first tenth, which is warm-up.

    It uses medians of a hundred groups, so that single batches during a vacuum have no influence.
    """
    steady = np.asarray(values[len(values) // TENTHS :], float)
    return rise([float(np.median(group)) for group in np.array_split(steady, min(_GROUPS, len(steady)))])
