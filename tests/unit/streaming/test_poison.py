"""Records that no task can process are found, written to the dead letters undecoded, and stop nothing else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log2
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.ledger.skipped_records import SkippedRecords, SkippedRecordsOfStream
from gamelake.model.errors import KafkaUnavailableError, StoreUnavailableError
from gamelake.model.naming import DEAD_LETTERS
from gamelake.objects.store import Store
from gamelake.schemas.decoder import Decoded, Decoder
from gamelake.streaming.driver.decision import Decider, Decision, Parallelism
from gamelake.streaming.driver.poison import PoisonAvoidingDecider, poisonous
from gamelake.streaming.kafka.batch_records import RecordTask
from gamelake.streaming.kafka.consumers import PartitionRange
from tests.support.failing import failing
from tests.support.logged import logged
from tests.unit.properties import examples
from tests.unit.streaming.streams import TOPIC_ID, a_stream
from tests.unit.streaming.tasks import (
    KART_TABLE,
    KafkaTaskRecord,
    RecordsInProcess,
    TaskLakehouse,
    a_record,
    numbered,
    rows_of,
)

POISON = b"poison"
Decide = Callable[[RecordsInProcess], Decision]


class KillingRecords(RecordsInProcess):
    """Records whose tasks are killed by each poisonous one that they decode."""

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        skipped = cast("Any", task).plan.skipped
        for each in (record for records in self.tasks for record in records):
            if each.value == POISON and not any(other.has(each.partition, each.offset) for other in skipped):
                raise RuntimeError("the Python worker exited unexpectedly")
        return super().reports(task, tasks)


@pytest.fixture
def decoder_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the decoder raise for each batch that has a poisonous value."""
    portions = Decoder.portions

    def failing(self: Decoder, values: pa.BinaryArray) -> Iterator[tuple[int, Decoded]]:
        if POISON in values.to_pylist():
            raise ZeroDivisionError("the secret of a player")
        return portions(self, values)

    monkeypatch.setattr(Decoder, "portions", failing)


def no_answer_needed() -> None:
    """Kafka responds."""


def avoiding(lakehouse: TaskLakehouse, require_kafka: Callable[[], None] = no_answer_needed) -> Decide:
    """The decisions of a process that starts now."""
    generation = a_stream(lakehouse.folder).open(TOPIC_ID)
    decider = Decider(lakehouse.plan(), {}, Parallelism(2, 1))
    careful = PoisonAvoidingDecider(decider, lakehouse.store, generation, require_kafka)
    return lambda records: careful.decide(cast("Any", records), records.planned, None)


def poisoned(places: Sequence[int], records: int = 40) -> list[list[KafkaTaskRecord]]:
    """Return the records of two partitions; those at some places of the first one are poisonous."""
    good = numbered([a_record(1)] * records)
    first = [replace(each, value=POISON) if each.offset in places else each for each in good]
    return [first, [replace(each, partition=1) for each in good]]


def offsets_of(lakehouse: TaskLakehouse, decision: Decision, table: str, column: str) -> list[int]:
    """The offsets of the rows of a table, sorted."""
    return sorted(row[column] for row in rows_of(lakehouse.store, decision.tables, table))


@pytest.mark.parametrize("places", [[0], [17], [39], [3, 4, 30], list(range(0, 40, 2))])
@pytest.mark.usefixtures("decoder_fails")
def test_records_that_the_decoder_fails_on_are_dead_letters_and_all_others_are_rows(
    lakehouse: TaskLakehouse, places: list[int]
) -> None:
    decision = avoiding(lakehouse)(RecordsInProcess(poisoned(places)))

    assert decision.dead_letters == {"poisonous": len(places)}
    assert decision.records == 80
    letters = rows_of(lakehouse.store, decision.tables, DEAD_LETTERS)
    assert sorted(each["offset"] for each in letters) == places
    assert {each["value"] for each in letters} == {POISON}
    assert offsets_of(lakehouse, decision, KART_TABLE, "kafka_offset") == sorted(
        [*range(40), *(each for each in range(40) if each not in places)]
    )
    (detail,) = {each["detail"] for each in letters}
    assert detail.startswith("ZeroDivisionError in ")
    assert "secret" not in detail


def test_records_that_kill_each_task_are_dead_letters_and_all_others_are_rows(
    lakehouse: TaskLakehouse, caplog: pytest.LogCaptureFixture
) -> None:
    decision = avoiding(lakehouse)(KillingRecords(poisoned([5, 21])))

    assert decision.dead_letters == {"poisonous": 2}
    assert len(offsets_of(lakehouse, decision, KART_TABLE, "kafka_offset")) == 78
    assert [each["offset"] for each in logged(caplog, "poison_found")] == [5, 21]


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.usefixtures("decoder_fails")
def test_a_process_that_is_killed_by_a_batch_leaves_that_to_the_next_ones(lakehouse: TaskLakehouse) -> None:
    class DeadlyRecords(RecordsInProcess):
        def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
            if len(self.tasks) > 1:
                raise Killed
            return super().reports(task, tasks)

    for _ in range(2):
        with pytest.raises(Killed):
            avoiding(lakehouse)(DeadlyRecords(poisoned([7])))

    # The third process searches before it decides all at once.
    with pytest.raises(Killed):
        avoiding(lakehouse)(DeadlyRecords(poisoned([7])))
    (found,) = SkippedRecordsOfStream(lakehouse.store, "ingest").all(TOPIC_ID)
    assert (found.partition, found.first, found.last) == (0, 7, 7)


def unreachable() -> None:
    raise KafkaUnavailableError("no broker")


class UnreachableRecords(RecordsInProcess):
    """Records that Kafka does not return."""

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        raise KafkaUnavailableError("no broker")


@pytest.mark.usefixtures("decoder_fails")
def test_processes_that_outages_end_have_not_failed_because_of_records(
    lakehouse: TaskLakehouse, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with pytest.raises(KafkaUnavailableError):
            avoiding(lakehouse)(UnreachableRecords(poisoned([])))
        with pytest.raises(KafkaUnavailableError):
            avoiding(lakehouse, unreachable)(RecordsInProcess(poisoned([7])))

    assert avoiding(lakehouse)(RecordsInProcess(poisoned([]))).dead_letters == {}
    assert logged(caplog, "poison_searched") == []


def test_an_outage_takes_no_earlier_failure_back(lakehouse: TaskLakehouse, caplog: pytest.LogCaptureFixture) -> None:
    class DeadlyRecords(RecordsInProcess):
        def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
            raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            avoiding(lakehouse)(DeadlyRecords(poisoned([])))
        with pytest.raises(KafkaUnavailableError):
            avoiding(lakehouse)(UnreachableRecords(poisoned([])))

    # The fourth process has searched, and so does the next one.
    assert len(logged(caplog, "poison_searched")) == 1
    avoiding(lakehouse)(RecordsInProcess(poisoned([])))
    assert len(logged(caplog, "poison_searched")) == 2


def test_a_decided_batch_has_no_failures_though_its_processes_end_before_they_settle_it(
    lakehouse: TaskLakehouse, caplog: pytest.LogCaptureFixture
) -> None:
    """A rule stops the batch, for example."""
    for _ in range(3):
        avoiding(lakehouse)(RecordsInProcess(poisoned([])))

    assert logged(caplog, "poison_searched") == []


@pytest.mark.usefixtures("decoder_fails")
def test_an_outage_of_kafka_dead_letters_nothing(lakehouse: TaskLakehouse) -> None:
    with pytest.raises(KafkaUnavailableError):
        avoiding(lakehouse, unreachable)(RecordsInProcess(poisoned([7])))

    assert SkippedRecordsOfStream(lakehouse.store, "ingest").all(TOPIC_ID) == ()


def test_an_outage_of_the_store_dead_letters_nothing(lakehouse: TaskLakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = avoiding(lakehouse)

    with monkeypatch.context() as during:
        for write in ("put", "put_new"):
            during.setattr(Store, write, failing(OSError("no space left on device")))
        with pytest.raises((StoreUnavailableError, OSError)):
            decide(RecordsInProcess(poisoned([])))

    assert SkippedRecordsOfStream(lakehouse.store, "ingest").all(TOPIC_ID) == ()
    assert decide(RecordsInProcess(poisoned([]))).dead_letters == {}


def test_a_failure_that_dead_letters_share_dead_letters_nothing(
    lakehouse: TaskLakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamelake.streaming.tasks.task.as_bronze", failing(ZeroDivisionError()))

    with pytest.raises(Exception, match="ZeroDivisionError"):
        avoiding(lakehouse)(RecordsInProcess(poisoned([], records=4)))

    assert SkippedRecordsOfStream(lakehouse.store, "ingest").all(TOPIC_ID) == ()


def test_a_batch_without_records_that_fails_raises_its_own_error(
    lakehouse: TaskLakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Decider, "decide", failing(ZeroDivisionError("no task")))

    with pytest.raises(ZeroDivisionError):
        avoiding(lakehouse)(RecordsInProcess([]))


def test_a_batch_without_records_that_failed_often_succeeds_once_its_tasks_run(
    lakehouse: TaskLakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(RecordsInProcess, "reports", failing(OSError("no Spark worker")))
        for _ in range(4):
            with pytest.raises(OSError, match="no Spark worker"):
                avoiding(lakehouse)(RecordsInProcess([]))

    assert avoiding(lakehouse)(RecordsInProcess([])).records == 0


def test_what_an_operator_skips_is_a_dead_letter_undecoded(lakehouse: TaskLakehouse) -> None:
    skipped = SkippedRecordsOfStream(lakehouse.store, "ingest")
    for topic_id, first in ((TOPIC_ID, 10), ("another", 20)):
        skipped.add(SkippedRecords(topic_id=topic_id, partition=0, first=first, last=first + 4, problem="skipped"))

    decision = avoiding(lakehouse)(RecordsInProcess(poisoned([])))

    assert decision.dead_letters == {"poisonous": 5}
    assert offsets_of(lakehouse, decision, DEAD_LETTERS, "offset") == [*range(10, 15)]
    skipped.forget({0: 14})
    assert len(skipped.all(TOPIC_ID)) == 1
    skipped.forget({0: 40})
    assert skipped.all(TOPIC_ID) == ()


@given(data=st.data())
@examples(300)
def test_exactly_the_offsets_that_fail_are_found_in_few_trials(data: st.DataObject) -> None:
    ends = data.draw(st.lists(st.integers(1, 5_000), min_size=1, max_size=3))
    ranges = [PartitionRange(partition, 3, 3 + end) for partition, end in enumerate(ends)]
    poison = data.draw(
        st.sets(
            st.sampled_from(ranges).flatmap(
                lambda each: st.tuples(st.just(each.partition), st.integers(each.start, each.end - 1))
            ),
            max_size=6,
        )
    )
    trials = 0

    def problem_of(tried: PartitionRange) -> str:
        nonlocal trials
        trials += 1
        hit = any(at == tried.partition and tried.start <= offset < tried.end for at, offset in poison)
        return "fails" if hit else ""

    found = [(each.partition, each.start) for each, _ in poisonous(ranges, problem_of)]

    assert found == sorted(poison)
    assert trials <= len(ranges) + len(poison) * 2 * (log2(max(ends)) + 3)


def test_records_that_fail_only_together_are_not_poisonous() -> None:
    assert [*poisonous([PartitionRange(0, 0, 1_000)], lambda tried: "memory" if tried.offsets > 100 else "")] == []
