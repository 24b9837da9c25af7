"""The table of players' states is refreshed when enough has changed, however many players there are."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from gamelake.ledger.manifests import BatchManifest, Manifests, StateFiles
from gamelake.model.naming import state_folder
from gamelake.objects.store import Location, Store
from gamelake.serving.live_ops.plan import Base, StatePlan
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.maintenance import ErasedPlayers, StateKeeper
from gamelake.serving.live_ops.states.refreshing import Refresher, intervals_to_wait

FOLDER = state_folder("live_ops")


@pytest.mark.parametrize(("players", "changed"), [(0, 0), (100_000, 0), (1_100_000, 100_000), (5, 1_000)])
def test_a_small_table_or_one_of_which_a_tenth_has_changed_is_refreshed_at_each_interval(
    players: int, changed: int
) -> None:
    assert intervals_to_wait(players, changed) == 1


@pytest.mark.parametrize(("players", "changed"), [(100_001, 0), (1_100_000, 99_999), (50_000_000, 1_000_000)])
def test_a_large_table_of_which_less_has_changed_waits_ten_intervals(players: int, changed: int) -> None:
    assert intervals_to_wait(players, changed) == 10


@dataclass
class RefreshesOfMillions:
    """Counts refreshes of a table of a million players, which are its base from the beginning."""

    count: int = 0
    batch_id: int = 0
    table: "RefreshesOfMillions" = field(init=False)

    def __post_init__(self) -> None:
        """Be the table, too."""
        self.table = self

    def base(self) -> tuple[Base, Sequence[tuple[int, str]]]:
        """Up to which batch the table has the state."""
        return Base(stream=FOLDER, batch_id=self.batch_id, players=1_000_000), []

    def refresh(
        self, plan: Callable[[], StatePlan], _shares: tuple[str, ...]
    ) -> tuple[Base, Sequence[tuple[int, str]]]:
        """Count, and say that the table has the plan's batch."""
        self.count, self.batch_id = self.count + 1, plan().batch_id
        return self.base()


class BatchesSince:
    """The batches that a stream has decided since the table was refreshed."""

    def __init__(self, *since: BatchManifest) -> None:
        self._since = since

    def after(self, _batch_id: int) -> list[int]:
        return [each.batch_id for each in self._since]

    def read_many(self, _batches: Sequence[int]) -> Sequence[BatchManifest]:
        return self._since

    def last(self, _count: int) -> Sequence[BatchManifest]:
        return ()


def a_batch(number: int, changed: int) -> BatchManifest:
    return cast("BatchManifest", _Batch(number, StateFiles(moment=number, shares=(), carried="", changed=changed)))


@dataclass
class _Batch:
    batch_id: int
    state: StateFiles


@pytest.fixture
def refreshes() -> RefreshesOfMillions:
    """A table of a million players."""
    return RefreshesOfMillions()


@pytest.fixture
def start(tmp_path: Path, refreshes: RefreshesOfMillions) -> Callable[..., StateKeeper]:
    """Starts the keeper again, two intervals after the last refresh, with the batches that were decided since."""

    def started(*since: BatchManifest) -> StateKeeper:
        store = Store(Location(uri=tmp_path.as_uri()))
        keeper = StateKeeper(
            store=store,
            folder=FOLDER,
            seed="seed",
            shares=2,
            every=timedelta(hours=1),
            watching=Watching(Detector(), 0),
            forgotten=ErasedPlayers(store, (), "seed"),
            refresher=cast("Refresher", refreshes),
            _refreshed_at=time.monotonic() - 2 * 3_600,
        )
        keeper.resume(cast("Manifests", BatchesSince(*since)))
        return keeper

    return started


def test_changes_of_several_batches_add_up_until_they_are_enough(
    start: Callable[..., StateKeeper], refreshes: RefreshesOfMillions
) -> None:
    keeper = start()
    keeper.took(a_batch(1, 60_000))
    assert refreshes.count == 0
    keeper.took(a_batch(2, 30_000))
    assert refreshes.count == 1


def test_a_start_knows_what_changed_before_it(
    start: Callable[..., StateKeeper], refreshes: RefreshesOfMillions
) -> None:
    keeper = start(a_batch(1, 60_000))
    keeper.took(a_batch(2, 30_000))
    assert refreshes.count == 1
