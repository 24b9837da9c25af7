"""Leases: one process at a time, with a fencing token that grows."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gamelake.model.errors import LeaseHeldError, LeaseLostError
from gamelake.objects.leases import Lease, LeaseTiming, process_has_ended, process_mark
from gamelake.objects.store import Store
from tests.support.eventually import eventually
from tests.support.interrupted_store import InterruptedStore

QUICK = LeaseTiming(renew=0.05, patience=0.5, poll=0.05)
PATIENT = LeaseTiming(renew=0.05, patience=0.5, poll=0.05, wait=30)
FOLDER = "_gamelake/leases/silver/chess_events"


def lease(store: Store, timing: LeaseTiming = QUICK) -> Lease:
    return Lease(store, FOLDER, "maintenance of chess", timing)


def test_a_second_process_is_refused_while_the_first_is_alive(store: Store) -> None:
    with (
        lease(store),
        pytest.raises(LeaseHeldError, match=r"maintenance of chess is held by process \d+ on .*alive"),
        lease(store),
    ):
        pass


def test_a_waiting_process_gets_the_lease_when_it_is_released(store: Store) -> None:
    first, entered = lease(store), threading.Event()
    first.__enter__()

    def wait() -> None:
        with lease(store, PATIENT):
            entered.set()

    second = threading.Thread(target=wait)
    second.start()
    assert not entered.wait(1)
    first.__exit__(None, None, None)

    assert entered.wait(10)
    second.join()


def test_a_released_lease_is_free_at_once(store: Store) -> None:
    with lease(store, LeaseTiming(patience=1_000)) as first:
        pass

    with lease(store, LeaseTiming(patience=1_000)) as second:
        assert second.token == first.token + 1
        assert not second.took_over


def test_the_lease_of_a_process_that_was_killed_is_taken_over(store: Store) -> None:
    killed(store)

    with lease(store) as taken:
        taken.require()
        assert (taken.token, taken.took_over) == (8, True)


def test_a_holder_of_this_machine_that_was_killed_is_not_waited_for(store: Store) -> None:
    program = (
        "import sys, time\n"
        "from gamelake.objects.leases import Lease\n"
        "from gamelake.objects.store import Location, Store\n"
        f"with Lease(Store(Location(uri={store.location.uri!r})), {FOLDER!r}, 'maintenance of chess'):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        mark = process_mark(holder.pid)
        assert not process_has_ended(mark)
        holder.kill()
        eventually(lambda: process_has_ended(mark), timeout=10)

        with lease(store, LeaseTiming(patience=1_000)) as taken:
            assert (taken.token, taken.took_over) == (2, True)


def test_a_process_of_another_machine_is_never_known_to_have_ended() -> None:
    boot, namespace, process, started = process_mark(os.getpid()).split()

    assert process_has_ended(f"{boot} {namespace} {process} {int(started) - 1}")
    assert not process_has_ended(f"another {namespace} {process} {int(started) - 1}")
    assert not process_has_ended(f"{boot} pid:[1] {process} {int(started) - 1}")
    assert not process_has_ended("")


def test_one_of_many_waiting_processes_takes_over(store: Store) -> None:
    killed(store)
    took: list[int] = []
    refused: list[bool] = []

    def take() -> None:
        try:
            with lease(store) as taken:
                took.append(taken.token)
                go.wait(5)
        except LeaseHeldError:
            refused.append(True)

    go = threading.Event()
    takers = [threading.Thread(target=take) for _ in range(8)]
    for taker in takers:
        taker.start()
    eventually(lambda: len(took) + len(refused) == 8, timeout=10)
    go.set()
    for taker in takers:
        taker.join()

    assert (took, len(refused)) == ([8], 7)


def test_a_waiting_process_waits_on_when_another_is_faster(store: Store) -> None:
    """Each holds the lease for a moment, and takes it again and again, as compactions and vacuums of a table do."""
    taken: list[int] = []

    def take_again_and_again() -> None:
        for _ in range(30):
            with lease(store, LeaseTiming(renew=1, patience=30, poll=0.001, wait=60)) as held:
                taken.append(held.token)

    with ThreadPoolExecutor(3) as pool:
        for process in [pool.submit(take_again_and_again) for _ in range(3)]:
            process.result()

    assert taken == sorted(set(taken))
    assert len(taken) == 90


def test_a_process_finds_that_its_lease_was_taken_over(store: Store) -> None:
    with lease(store) as stalled:
        store.put_new(f"{FOLDER}/{stalled.token + 1:012d}.claim", b'{"holder": "other", "where": "there"}')

        eventually(lambda: is_lost(stalled), timeout=5)


def test_a_process_that_has_stalled_finds_so_before_its_next_heartbeat(store: Store) -> None:
    with lease(store, LeaseTiming(renew=1_000)) as stalled:
        stalled.require()
        store.put_new(f"{FOLDER}/{stalled.token + 1:012d}.claim", b'{"holder": "other", "where": "there"}')

        with pytest.raises(LeaseLostError, match="another process has taken over maintenance of chess"):
            stalled.require()


def test_objects_of_former_holders_are_deleted_except_of_the_last_one(store: Store) -> None:
    for _ in range(5):
        with lease(store):
            pass

    assert numbers(store) == {4, 5}


@pytest.mark.parametrize("former", range(1, 5))
@pytest.mark.parametrize("at", range(1, 7))
def test_a_process_that_stalls_at_any_step_never_holds_the_lease_of_another(store: Store, at: int, former: int) -> None:
    """While it stalls, several processes hold the lease one after the other, and the last one still holds it."""
    with lease(store):
        pass
    impatient = LeaseTiming(renew=0.05, patience=0.05, poll=0.01)
    other = lease(store, impatient)

    def hold() -> None:
        for _ in range(former):
            with lease(store, impatient):
                pass
        other.__enter__()

    interrupted = InterruptedStore(store.location, hold)
    interrupted.interrupt(at)
    mine = Lease(interrupted, FOLDER, "maintenance of chess", LeaseTiming(renew=0.05, patience=1_000))
    try:
        mine.__enter__()
    except LeaseHeldError:
        pass
    else:
        # It stalls after it has the lease, in its heartbeat if it has not before, so the others have to take it over.
        eventually(lambda: interrupted.stalled != "", timeout=5)
        assert interrupted.stalled != "put_new"
        eventually(lambda: is_lost(mine), timeout=5)
        mine.__exit__(None, None, None)

    other.require()
    assert other.token == max(numbers(store))
    other.__exit__(None, None, None)
    with lease(store, LeaseTiming(patience=1_000)) as after:
        assert after.token == max(numbers(store))


def test_a_holder_whose_claim_was_cleaned_up_finds_that_it_has_lost_the_lease(store: Store) -> None:
    with lease(store) as stalled:
        for number in (1, 2, 3):
            store.put_new(f"{FOLDER}/{stalled.token + number:012d}.claim", b'{"holder": "other", "where": "there"}')
        for number in (0, 1):
            store.delete(f"{FOLDER}/{stalled.token + number:012d}.claim")

        eventually(lambda: is_lost(stalled), timeout=5)


def numbers(store: Store) -> set[int]:
    return {int(path.rsplit("/", 1)[-1].split(".")[0]) for path in store.paths(FOLDER)}


def killed(store: Store) -> None:
    """Leave what a process leaves that is killed while it holds the lease for the seventh time."""
    store.put(f"{FOLDER}/000000000007.claim", b'{"holder": "dead", "where": "there"}')
    store.put(f"{FOLDER}/000000000007.sign", b"3")


def is_lost(held: Lease) -> bool:
    try:
        held.require()
    except LeaseLostError:
        return True
    return False
