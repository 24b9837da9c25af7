"""Turns an experiment's statistics into results: one row per day, metric and variant other than the control."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.experiments import ExperimentSpec, Guard
from gamelake.model.arrays import Floats
from gamelake.serving.experiments.statistics import ALPHA, Comparison, Sums, compare, sample_ratio_p
from gamelake.serving.experiments.tables import RESULTS

# Below this probability the assignment or the exposures are faulty.
_MISMATCH = 0.001
_SUMS = ("players", "total", "total_squares", "before", "before_squares", "crossed")
_BY_DAY = [("event_date", "ascending")]


class ExperimentVerdict(StrEnum):
    """The verdict on a metric of a variant."""

    HIGHER = "higher"
    LOWER = "lower"
    UNDECIDED = "undecided"
    HARMED = "harmed"
    SAMPLE_RATIO_MISMATCH = "sample_ratio_mismatch"


def results(experiment: ExperimentSpec, statistics: pa.Table) -> pa.Table:
    """Compare each variant with the control, for each metric and day.

    Args:
        experiment: the experiment.
        statistics: its rows of the table of statistics, with `event_date`, `metric` and `variant`.

    Returns:
        The columns of the table of results, except those that it is partitioned by.
    """
    ratios = _sample_ratios(experiment, statistics)
    count = len(experiment.metrics) * (len(experiment.variants) - 1)
    parts = []
    for metric in experiment.metrics:
        control = _sorted(statistics, metric, experiment.control)
        for variant in experiment.variants[1:]:
            rows = _sorted(statistics, metric, variant.name)
            compared = compare(_sums(control), _sums(rows), count)
            parts.append(_rows(experiment, metric, (control, rows), compared, ratios))
    return pa.concat_tables(parts)


def _sorted(statistics: pa.Table, metric: str, variant: str) -> pa.Table:
    wanted = (pc.field("metric") == metric) & (pc.field("variant") == variant)
    return statistics.filter(wanted).sort_by(_BY_DAY)


def _sums(rows: pa.Table) -> Sums:
    return Sums(*(rows.column(name).to_numpy().astype(np.float64) for name in _SUMS))


def _sample_ratios(experiment: ExperimentSpec, statistics: pa.Table) -> Floats:
    """Return the probability of each day's numbers of players, in order of the days."""
    metric, shares = experiment.primary, [each.share for each in experiment.variants]
    players = [_sums(_sorted(statistics, metric, each.name)).players for each in experiment.variants]
    return np.array([sample_ratio_p(list(day), shares) for day in zip(*players, strict=True)])


def _rows(
    experiment: ExperimentSpec,
    metric: str,
    sides: tuple[pa.Table, pa.Table],
    compared: Comparison,
    ratios: Floats,
) -> pa.Table:
    control, variant = (_sums(each) for each in sides)
    with np.errstate(divide="ignore", invalid="ignore"):
        control_mean, mean = control.mean, variant.mean
        lift = compared.difference / control_mean
    columns: Mapping[str, Any] = {
        "event_date": sides[1].column("event_date"),
        "metric": sides[1].column("metric"),
        "variant": sides[1].column("variant"),
        "role": ["primary" if metric == experiment.primary else "guardrail"] * len(ratios),
        "verdict": _verdicts(experiment.guardrails.get(metric), compared, ratios),
        "players": variant.players,
        "control_players": control.players,
        "mean": mean,
        "control_mean": control_mean,
        "difference": compared.difference,
        "lift": lift,
        "low": compared.always_low,
        "high": compared.always_high,
        "p_value": compared.always_p,
        "final_low": compared.low,
        "final_high": compared.high,
        "final_p_value": compared.p_value,
        "detectable": compared.detectable,
        "variance_left": compared.variance_left,
        "sample_ratio_p": ratios,
        "excluded": sides[1].column("excluded"),
    }
    stored = pa.schema([each for each in RESULTS.schema if each.name not in RESULTS.partition_by])
    return pa.table([_without_nan(columns[each.name]).cast(each.type) for each in stored], schema=stored)


def _verdicts(guard: Guard | None, compared: Comparison, ratios: Floats) -> list[str]:
    is_sure = compared.always_p < ALPHA
    higher, lower = is_sure & (compared.difference > 0), is_sure & (compared.difference < 0)
    harmed = {None: np.zeros_like(higher), Guard.MUST_NOT_FALL: lower, Guard.MUST_NOT_RISE: higher}[guard]
    found = np.select(
        [ratios < _MISMATCH, harmed, higher, lower],
        [
            ExperimentVerdict.SAMPLE_RATIO_MISMATCH,
            ExperimentVerdict.HARMED,
            ExperimentVerdict.HIGHER,
            ExperimentVerdict.LOWER,
        ],
        ExperimentVerdict.UNDECIDED,
    )
    return [str(each) for each in found]


def _without_nan(column: Any) -> pa.Array:  # noqa: ANN401 # an array of Arrow or NumPy, or a list
    """Return the column with null for NaN and infinity."""
    if isinstance(column, np.ndarray):
        return pa.array(column, mask=~np.isfinite(column))
    return column if isinstance(column, pa.ChunkedArray) else pa.array(column)
