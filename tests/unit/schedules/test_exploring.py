"""The explorer itself: it finds what breaks, says how, and always runs a schedule in the same way."""

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.log.codec import live_files
from gamelake.delta.log.table_features import TableDemands
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.objects.store import Location, Store
from tests.explorer.exploring import Case, Run, exhaustive, explore, run, sampled, shrink
from tests.explorer.simulation import MemoryStore, ScheduledStore
from tests.explorer.tables import MemoryTable
from tests.explorer.world import Deviation, Faults, ReplyLostError, UnknownOptionError, World
from tests.support.player_tables import SILVER, append, append_rows, store_in
from tests.unit.properties import examples

COUNTER = "counter"
RULE = CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))


def counting(increment: Callable[[Store], None], processes: int = 2) -> Case:
    def case(world: World) -> Callable[[], None]:
        store = ScheduledStore(MemoryStore(lambda: world.now))
        store.plain.put(f"{COUNTER}/0", b"")
        for number in range(processes):
            world.start(f"process {number}", lambda: increment(store))

        def check() -> None:
            found = len(store.plain.paths(COUNTER)) - 1
            assert found == processes, f"{found} increments of {processes}"

        return check

    return case


def overwriting(store: Store) -> None:
    """Read and write: what another process writes in between is lost."""
    newest = len(store.paths(COUNTER))
    store.put(f"{COUNTER}/{newest}", b"")


def creating(store: Store) -> None:
    """Read, and create what no other process has created."""
    newest = len(store.paths(COUNTER))
    while not store.put_new(f"{COUNTER}/{newest}", repr(id(object())).encode() + bytes(newest)):
        newest += 1


def failures(case: Case, faults: Faults, deviations: int) -> list[Run]:
    return [each for each in exhaustive(case, faults, deviations) if each.failure]


def test_an_overwritten_update_is_found_by_one_deviation() -> None:
    case = counting(overwriting)

    assert not run(case, (), Faults()).failure
    found = failures(case, Faults(), 1)

    assert found
    assert {each.failure.splitlines()[0] for each in found} == {"1 increments of 2"}


def test_the_message_has_the_shortest_schedule_and_what_happened() -> None:
    case = counting(overwriting, processes=3)
    faults = Faults(stalls=2)

    with pytest.raises(AssertionError, match=r"increments of 3") as found:
        explore(sampled(case, faults, 200, 6), case, faults)

    text = str(found.value)
    assert text.count("Deviation(") == 1
    assert "process 0: list counter" in text


def test_a_failing_schedule_is_shrunk_to_what_is_needed() -> None:
    case = counting(overwriting, processes=3)
    faults = Faults(stalls=2)
    long = max((each for each in sampled(case, faults, 300, 6) if each.failure), key=lambda each: len(each.schedule))

    short = shrink(case, long, faults)

    assert len(long.schedule) > 1
    assert len(short.schedule) == 1
    assert short.failure


def test_a_schedule_always_gives_the_same_run() -> None:
    case, faults = counting(creating, processes=3), Faults(kills=1, stalls=1, lost_replies=1)

    for each in sampled(case, faults, 20, 4):
        assert run(case, each.schedule, faults) == each


def test_each_order_of_two_processes_is_run() -> None:
    """Two processes with two operations each can be interleaved in six ways, of which three deviations reach all."""
    orders = set()

    def case(world: World) -> Callable[[], None]:
        store, order = ScheduledStore(MemoryStore(lambda: world.now)), []

        def work(name: str) -> None:
            for _ in range(2):
                store.get(name)
                order.append(name)

        for name in "ab":
            world.start(name, partial(work, name))
        return lambda: orders.add("".join(order))

    explore(exhaustive(case, Faults(), 3), case, Faults())

    assert orders == {"aabb", "abab", "abba", "baab", "baba", "bbaa"}


@pytest.mark.parametrize(("option", "left"), [("is killed", 0), ("is killed, its request is under way", 1)])
def test_the_last_request_of_a_killed_process_may_have_an_effect(option: str, left: int) -> None:
    ends = []

    def case(world: World) -> Callable[[], None]:
        plain = MemoryStore(lambda: world.now)

        def work() -> None:
            try:
                ScheduledStore(plain).put("object", b"")
            finally:
                # A process that was killed does nothing any more.
                ScheduledStore(plain).put("cleaned up", b"")

        world.start("process", work)
        return lambda: ends.append(len(plain.content))

    killed = [each for each in exhaustive(case, Faults(kills=1), 1) if each.trace[-1].endswith(option)]
    first = min(killed, key=lambda each: each.schedule[0].point)
    ends.clear()

    run(case, first.schedule, Faults(kills=1))
    assert ends == [left]


def test_a_killed_process_is_started_again() -> None:
    starts: list[str] = []

    def case(world: World) -> Callable[[], None]:
        starts.clear()
        store = ScheduledStore(MemoryStore(lambda: world.now))

        def work() -> None:
            starts.append("start")
            store.get("object")

        world.start("process", work, restarts=1)

        def check() -> None:
            assert len(starts) == 1 + len(world.errors)

        return check

    assert explore(exhaustive(case, Faults(kills=1), 1), case, Faults(kills=1)) > 1


def test_a_lost_reply_is_an_error_after_the_effect() -> None:
    seen: list[tuple[bool, bool]] = []

    def case(world: World) -> Callable[[], None]:
        plain = MemoryStore(lambda: world.now)

        def work() -> None:
            try:
                ScheduledStore(plain).put("object", b"")
            except ReplyLostError:
                seen.append((True, "object" in plain.content))
            else:
                seen.append((False, "object" in plain.content))

        world.start("process", work)
        return lambda: None

    explore(exhaustive(case, Faults(lost_replies=1), 1), case, Faults(lost_replies=1))

    assert set(seen) == {(False, True), (True, True)}


def test_a_process_that_stalls_sees_the_clock_jump() -> None:
    times: set[float] = set()

    def case(world: World) -> Callable[[], None]:
        store = ScheduledStore(MemoryStore(lambda: world.now))

        def work() -> None:
            store.get("object")
            times.add(world.now)

        world.start("process", work)
        return lambda: None

    faults = Faults(stalls=1, stall_seconds=7)
    explore(exhaustive(case, faults, 1), case, faults)

    assert times == {0.0, 7.0}


def test_the_time_of_day_jumps_for_one_machine_only() -> None:
    times: set[tuple[float, float]] = set()

    def case(world: World) -> Callable[[], None]:
        store, seen = ScheduledStore(MemoryStore(lambda: world.now)), {}

        def work(name: str) -> None:
            store.get("object")
            seen[name] = world.time_of_day()

        for name in "ab":
            world.start(name, partial(work, name))
        return lambda: times.add((seen["a"], seen["b"]))

    faults = Faults(clock_jumps=1, jump_seconds=7)
    explore(exhaustive(case, faults, 1), case, faults)

    assert times == {(0.0, 0.0), (7.0, 0.0), (-7.0, 0.0), (0.0, 7.0), (0.0, -7.0)}


def test_processes_that_wait_for_each_other_are_reported() -> None:
    def case(world: World) -> Callable[[], None]:
        world.start("process", lambda: world.wait(lambda: False))
        return lambda: None

    assert "deadlock: process" in run(case, (), Faults()).failure


def test_a_schedule_of_another_case_is_refused() -> None:
    world = World((Deviation(0, 9),))
    counting(creating)(world)

    with pytest.raises(UnknownOptionError, match="point 0 has 2 options"):
        world.run()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put_new", "copy", "delete"]),
        st.sampled_from(["a/1", "a/2", "b/1", "a/c/1"]),
        st.sampled_from([b"", b"one", b"two"]),
    ),
    max_size=12,
)


@given(OPERATIONS)
@examples(60)
def test_the_store_in_memory_does_what_a_real_one_does(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str, bytes]]
) -> None:
    real: Store = Store(Location(uri=f"file://{tmp_path_factory.mktemp('store')}"))
    memory = MemoryStore(lambda: 0.0)

    assert [_done(real, *each) for each in operations] == [_done(memory, *each) for each in operations]
    for prefix in ("a", "b", "a/c", "none"):
        assert real.paths(prefix) == memory.paths(prefix)
        # A local disk keeps empty folders, which an object store doesn't have.
        assert [each for each in real.folders(prefix) if real.paths(each)] == memory.folders(prefix)
        assert sorted((x.path, x.size) for x in real.objects(prefix)) == [
            (x.path, x.size) for x in memory.objects(prefix)
        ]
    assert list(real.get_all(["a/1", "b/1"])) == list(memory.get_all(["a/1", "b/1"]))
    assert real.missing(["a/1", "b/1"]) == memory.missing(["a/1", "b/1"])
    for store in (real, memory):
        store.put("d/1", b"0123456789")
        assert (store.get_range("d/1", 3, 4), store.get_range("d/1", 8, 4)) == (b"3456", b"89")
        assert store.get_range("d/2", 0, 1) is None


def _done(store: Store, operation: str, path: str, content: bytes) -> object:
    try:
        match operation:
            case "put":
                store.put(path, content)
            case "put_new":
                return store.put_new(path, content)
            case "copy":
                store.copy(path, "a/copy")
            case _:
                store.delete(path)
    except FileNotFoundError:
        return "not found"
    return None


def test_a_table_in_memory_says_what_delta_rs_says_of_it(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with DeltaTables(store.location) as tables:
        for batch, player in enumerate(["a", "b", "c"]):
            append(tables, store, SILVER, batch, [player])
        TableCompaction(store.location, SILVER.name, RULE)()
        append_rows(tables, store, 3, pa.table({"gamer_id": ["d"], "level": [1]}))

    for version in (None, 0, 2, 3, 4):
        real = open_table(store.location, SILVER.name, version)
        memory = cast("DeltaTable", MemoryTable(store, SILVER.name, version))
        assert memory.version() == real.version()
        assert sorted(live_files(memory), key=str) == sorted(live_files(real), key=str)
        assert memory.schema() == real.schema()
        assert [memory.transaction_version(each) for each in ("query-0", "none")] == [
            real.transaction_version(each) for each in ("query-0", "none")
        ]
        assert TableDemands.of(memory) == TableDemands.of(real)
        for name in ("id", "name", "description", "partition_columns", "created_time"):
            assert getattr(memory.metadata(), name) == getattr(real.metadata(), name)
    with pytest.raises(TableNotFoundError):
        MemoryTable(store, "silver/none")


def test_what_runs_in_a_store_by_a_path_is_found_by_it(tmp_path: Path) -> None:
    """A scheduled store may carry out its operations on a disk, where other programs find them."""
    plain = Store(Location(uri=f"file://{tmp_path}"))

    def case(world: World) -> Callable[[], None]:
        world.start("process", lambda: ScheduledStore(plain).put("folder/object", b"content"))
        return lambda: None

    run(case, (), Faults())

    assert (tmp_path / "folder/object").read_bytes() == b"content"
