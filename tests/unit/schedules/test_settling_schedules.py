"""The streams of Kafka records and of files decide batches of common events or columns, in every order of steps."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from gamelake.streaming.dedup import window as dedup_window
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.driver import recording
from tests.explorer.exploring import Case, effort, exhaustive, explore, sampled
from tests.explorer.streams import FILES, KAFKA, RESTARTS, Streams, simulated_lake
from tests.explorer.tables import Lake
from tests.explorer.world import Faults, World


@pytest.fixture(autouse=True)
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    return simulated_lake(monkeypatch)


def streams(
    lake: Lake,
    kafka: list[list[str]],
    files: list[list[str]],
    drivers: int = 1,
    levels: Mapping[str, pa.DataType] | None = None,
    days: Mapping[str, list[float]] | None = None,
) -> Case:
    """Return both streams, the one of Kafka records with a number of drivers."""

    def case(world: World) -> Callable[[], None]:
        both = Streams(world, lake, {KAFKA: kafka, FILES: files}, levels or {}, days or {})
        for number in range(drivers):
            world.start(f"{KAFKA} {number}", lambda: both.run(KAFKA), RESTARTS)
        world.start(FILES, lambda: both.run(FILES), RESTARTS)
        return both.check

    return case


@pytest.fixture
def one_event(lake: Lake) -> Case:
    """Return one event, which arrives through both sources."""
    return streams(lake, [["a"]], [["a"]])


def test_an_event_of_both_sources_is_one_row_by_each_schedule_with_one_fault(one_event: Case) -> None:
    faults = Faults(kills=1, stalls=1, lost_replies=1)

    assert explore(exhaustive(one_event, faults, 1), one_event, faults) > 100


@pytest.mark.slow
def test_an_event_of_both_sources_is_one_row_by_random_schedules(one_event: Case) -> None:
    faults = Faults(kills=2, stalls=2, lost_replies=2)

    assert explore(sampled(one_event, faults, effort(150), 5), one_event, faults) > 200


def test_events_of_several_batches_are_one_row_each_though_two_drivers_run(lake: Lake) -> None:
    faults = Faults(kills=2, stalls=2, lost_replies=1)
    case = streams(lake, [["a", "b"], ["c", "d"]], [["b", "c"], ["a", "e"]], drivers=2)

    assert explore(sampled(case, faults, effort(60), 6), case, faults) > 80


def test_a_decision_without_a_settle_record_is_found(one_event: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams as they were: a process that stalled decided a batch though another one had taken the lease over."""
    monkeypatch.setattr(ConcurrentStream, "record", lambda *_: True)
    faults = Faults(stalls=1)

    with pytest.raises(AssertionError, match=r"rows of each event: \{'a': 2\}"):
        explore(exhaustive(one_event, faults, 1), one_event, faults)


def columns_of_two_types(lake: Lake, batches: int = 1) -> Case:
    """Streams whose rows have a new column of one name and two types."""
    kafka, files = [[f"k{number}"] for number in range(batches)], [[f"f{number}"] for number in range(batches)]
    return streams(lake, kafka, files, levels={KAFKA: pa.int64(), FILES: pa.string()})


def test_each_batch_is_committed_though_streams_add_columns_of_two_types_by_each_schedule_with_one_fault(
    lake: Lake,
) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), columns_of_two_types(lake)

    assert explore(exhaustive(case, faults, 1), case, faults) > 100


@pytest.mark.slow
def test_each_batch_is_committed_though_streams_add_columns_of_two_types_by_random_schedules(lake: Lake) -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=2), columns_of_two_types(lake, batches=2)

    assert explore(sampled(case, faults, effort(60), 5), case, faults) > 100


def test_a_decision_that_is_not_compared_with_the_newest_columns_is_found(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams as they were: a batch is decided whose columns another stream has given other types, and waits."""
    monkeypatch.setattr(recording, "column_clashes", lambda *_: {})
    case = columns_of_two_types(lake)

    with pytest.raises(AssertionError, match="silver has other files than the batches"):
        explore(exhaustive(case, Faults(), 1), case, Faults())


def more_days_than_files_are_remembered(lake: Lake) -> Case:
    """Batches of weeks: the stream of files deletes identities while the other stream may still read them."""
    kafka, files = [["a"], ["b"], ["c"]], [["a", "d"], ["e"], ["b"]]
    return streams(lake, kafka, files, days={KAFKA: [0, 26, 27], FILES: [0, 8, 26]})


@pytest.mark.slow
def test_identities_may_leave_the_window_of_the_files_stream_by_each_schedule_with_one_fault(lake: Lake) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), more_days_than_files_are_remembered(lake)

    assert explore(exhaustive(case, faults, 1), case, faults) > 100


@pytest.mark.slow
def test_identities_may_leave_the_window_of_the_files_stream_by_random_schedules(lake: Lake) -> None:
    faults, case = Faults(kills=2, stalls=2, lost_replies=2), more_days_than_files_are_remembered(lake)

    assert explore(sampled(case, faults, effort(40), 5), case, faults) > 50


def files_that_are_merged(lake: Lake) -> Case:
    """The stream of files merges the identities of its first batches while the other stream reads them."""
    batches = {KAFKA: [["b"], ["a"], ["c"]], FILES: [["a", "d"], ["b", "e"], ["c", "f"], ["g"]]}

    def case(world: World) -> Callable[[], None]:
        days = {KAFKA: [0.01, 0.02, 0.2], FILES: [0, 0.01, 0.02, 0.1]}
        both = Streams(world, lake, batches, days=days, small_files=1)
        world.start(KAFKA, lambda: both.run(KAFKA), RESTARTS)
        world.start(FILES, lambda: both.run(FILES), RESTARTS)
        return both.check

    return case


@pytest.mark.slow
def test_identities_may_be_merged_while_they_are_read_by_each_schedule_with_one_fault(lake: Lake) -> None:
    faults, case = Faults(kills=1, stalls=1, lost_replies=1), files_that_are_merged(lake)

    assert explore(exhaustive(case, faults, 1), case, faults) > 100


def test_merged_files_that_are_deleted_at_once_are_found(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it would be without a grace: a task of the other stream reads a file of its plan that was merged meanwhile."""
    monkeypatch.setattr(dedup_window, "LONGEST_BATCH_SECONDS", -1)
    case = files_that_are_merged(lake)

    with pytest.raises(AssertionError, match="is gone or cut off"):
        explore(exhaustive(case, Faults(), 1), case, Faults())


def test_identities_that_are_read_after_their_stream_has_deleted_them_are_found(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams as they were: a task of the stream of Kafka records read files that had left the other's window."""
    monkeypatch.setattr(ConcurrentFilesStream, "_forget_expired", lambda _: None)
    monkeypatch.setattr(ConcurrentFilesStream, "_may_expire_before", lambda _: 0)
    case = more_days_than_files_are_remembered(lake)

    with pytest.raises(AssertionError, match="is gone or cut off"):
        explore(exhaustive(case, Faults(), 1), case, Faults())


@pytest.mark.slow
def test_a_window_that_is_guessed_by_files_which_are_about_to_be_deleted_is_found(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams as they were: after a pause, a task read files that left the window by the other stream's batch."""

    def guessed(files: ConcurrentFilesStream) -> float:
        written = [each.written_at for each in files._events.values()]  # noqa: SLF001 # to replace a method
        return files.clock() + 3_600 - max(max(written, default=0) - min(written, default=0), 86_400)

    monkeypatch.setattr(ConcurrentFilesStream, "_may_expire_before", guessed)
    case = more_days_than_files_are_remembered(lake)

    with pytest.raises(AssertionError, match="is gone or cut off"):
        explore(exhaustive(case, Faults(stalls=1), 2), case, Faults(stalls=1))
