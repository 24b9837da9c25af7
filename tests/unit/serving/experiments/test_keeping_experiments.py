"""Gold's job keeps the tables of experiments up to date; a wrong contract stops only experiments."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.objects.store import Location, Store
from gamelake.serving.experiments.keeper import ExperimentKeeper


@pytest.fixture
def keeper(tmp_path: Path) -> ExperimentKeeper:
    for name in ("games.yaml", "metrics.yaml", "experiments.yaml"):
        shutil.copy(Path("contracts") / name, tmp_path / name)
    store = Store(Location(uri=f"file://{tmp_path / 'lake'}"))
    return ExperimentKeeper(store, tmp_path / "games.yaml", interval=timedelta(0), pause=0)


def test_an_error_in_the_file_is_reported_until_it_is_corrected(keeper: ExperimentKeeper) -> None:
    file = keeper.games_file.with_name("experiments.yaml")
    right = file.read_text()
    file.write_text(right.replace("primary: bookings", "primary: revenue"))

    for _ in range(2):
        [failed] = keeper()
        assert "'revenue' is not a metric of players' days" in failed.reason

    file.write_text(right)
    assert keeper() == []


def test_no_file_means_no_experiments(keeper: ExperimentKeeper) -> None:
    keeper.games_file.with_name("experiments.yaml").unlink()

    assert keeper() == []


def test_a_long_refresh_is_followed_by_a_longer_pause(keeper: ExperimentKeeper) -> None:
    keeper.pause = 1e6
    assert keeper() == []

    keeper.games_file.with_name("experiments.yaml").write_text("nonsense: 1")

    assert keeper() == []


def test_a_refresh_waits_for_the_interval(keeper: ExperimentKeeper) -> None:
    keeper.interval = timedelta(hours=1)
    assert keeper() == []

    keeper.games_file.with_name("experiments.yaml").write_text("nonsense: 1")

    assert keeper() == []
