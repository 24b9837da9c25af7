"""Processes that want one lease, under every order of their operations."""

from collections.abc import Callable

import pytest

from gamelake.model.errors import LeaseHeldError, LeaseLostError
from gamelake.objects import leases
from gamelake.objects.leases import Lease, LeaseTiming
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.simulation import MemoryStore, ScheduledStore, simulate
from tests.explorer.world import Faults, ReplyLostError, World, calling_process

TIMING = LeaseTiming(renew=1, patience=4, poll=1, wait=20)
EXPECTED = (LeaseHeldError, LeaseLostError, ReplyLostError)


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(monkeypatch, leases)


def workers(count: int, runs: int = 1) -> Case:
    """Processes that take a lease, work and release it: each token has one holder.

    A process that stalled may still believe that it holds the lease. Without stalls there is one holder at a time.
    """

    def case(world: World) -> Callable[[], None]:
        store = ScheduledStore(MemoryStore(lambda: world.now))
        tokens: list[int] = []
        holders: list[str] = []
        together: list[set[str]] = []

        def work() -> None:
            for _ in range(runs):
                with Lease(store, "lease", "work", TIMING) as lease:
                    tokens.append(lease.token)
                    killed = {name for name, error in world.errors if error is None}
                    holders.append(calling_process())
                    together.append(set(holders) - killed)
                    store.get("work")
                    holders.remove(calling_process())

        for number in range(count):
            world.start(f"process {number}", work, restarts=1)

        def check() -> None:
            assert len(tokens) == len(set(tokens)), f"two holders of one token: {tokens}"
            has_stalled = any("stalls" in line for line in world.trace)
            assert has_stalled or max(map(len, together), default=0) <= 1, f"two holders at a time: {together}"
            unexpected = [error for _, error in world.errors if error is not None and not isinstance(error, EXPECTED)]
            assert not unexpected, unexpected

        return check

    return case


def test_each_token_has_one_holder_by_each_short_schedule() -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), workers(2)

    assert explore(exhaustive(case, faults, 2), case, faults) > 2_000


def test_each_token_has_one_holder_by_random_schedules() -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=1), workers(3, runs=2)

    assert explore(sampled(case, faults, effort(300), 6), case, faults) > 500


def test_a_stale_claim_that_is_not_withdrawn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease as it was: a process that stalled claimed a number again that others had cleaned up."""
    monkeypatch.setattr(Lease, "_withdraw_if_stale", lambda _: 0)
    faults, case = Faults(stalls=1), workers(2, runs=3)

    with pytest.raises(AssertionError, match="two holders of one token"):
        explore(exhaustive(case, faults, 1), case, faults)
