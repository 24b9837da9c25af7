"""Experiments as metrics: refreshes, experiments that are held back, and those with unequal groups."""

import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.experiments import ExperimentReporter
from gamelake.observability.metrics.serving.experiments import ExperimentTelemetry
from gamelake.serving.experiments.refresh import ExperimentsRefreshed
from tests.unit.serving.experiments.experiment_lake import (
    CONTROL,
    EXPERIMENT,
    SHOP,
    SPEC,
    START,
    ExperimentLake,
    exposure,
)

MISMATCH = "gamelake_experiment_sample_ratio_mismatch"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def reporter(lake: ExperimentLake, registry: CollectorRegistry) -> ExperimentReporter:
    return ExperimentReporter(lake.store, ExperimentTelemetry(registry), now=lake.refresh.now)


def mismatch(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value(MISMATCH, {"experiment": EXPERIMENT})


@pytest.mark.parametrize(("shop", "expected"), [(80, 0), (20, 1)])
def test_an_experiment_whose_players_dont_fit_the_shares_is_shown_even_after_a_restart(
    tmp_path: Path, registry: CollectorRegistry, shop: int, expected: int
) -> None:
    lake = ExperimentLake(folder=tmp_path, today=START.date())
    players = [(f"c{n}", CONTROL) for n in range(80)] + [(f"s{n}", SHOP) for n in range(shop)]
    done = lake.take(*(exposure(1, gamer, variant) for gamer, variant in players))

    reporter(lake, registry).refreshed(done, [SPEC])
    assert mismatch(registry) == expected

    restarted = CollectorRegistry()
    reporter(lake, restarted).refreshed(ExperimentsRefreshed(), [SPEC])
    assert mismatch(restarted) == expected


def test_an_experiment_that_is_over_has_no_series(tmp_path: Path, registry: CollectorRegistry) -> None:
    lake = ExperimentLake(folder=tmp_path, today=SPEC.last_day)
    report = reporter(lake, registry)
    report.refreshed(ExperimentsRefreshed(), [SPEC])
    assert mismatch(registry) == 0

    report.refreshed(ExperimentsRefreshed(), [])
    assert mismatch(registry) is None


def test_a_refresh_that_fails_is_counted_and_does_not_renew_the_time(
    tmp_path: Path, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def value(name: str) -> float | None:
        return registry.get_sample_value(f"gamelake_experiments_{name}")

    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    report = reporter(ExperimentLake(folder=tmp_path), registry)
    monkeypatch.setattr(time, "time", lambda: 2_000.0)

    report.failed(0)
    assert (value("held_back"), value("refreshed_timestamp_seconds")) == (1, 1_000)
    report.refreshed(ExperimentsRefreshed(failed=("new_shop", "other")), [SPEC])
    assert (value("held_back"), value("refreshed_timestamp_seconds")) == (2, 1_000)
    report.refreshed(ExperimentsRefreshed(), [SPEC])
    assert (value("held_back"), value("refreshed_timestamp_seconds")) == (0, 2_000)
