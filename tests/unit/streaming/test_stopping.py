"""A query stops between two batches: after the running one, and before the next one."""

from threading import Event, Thread

import pytest

from gamelake.streaming.driver.stopping import BatchGate


def test_a_query_stops_after_the_running_batch() -> None:
    gate, begun, may_end, steps = BatchGate(), Event(), Event(), list[str]()

    def run_batch() -> None:
        with gate.batch():
            begun.set()
            may_end.wait(60)
            steps.append("batch")

    def stop() -> None:
        with gate.between_batches(lambda: True):
            steps.append("stop")

    batch, stopping = Thread(target=run_batch), Thread(target=stop)
    batch.start()
    begun.wait(60)
    stopping.start()
    may_end.set()
    batch.join(60)
    stopping.join(60)

    assert steps == ["batch", "stop"]


def test_no_batch_begins_while_the_query_stops() -> None:
    gate = BatchGate()

    with gate.between_batches(lambda: True), pytest.raises(InterruptedError, match="stopping"), gate.batch():
        pytest.fail("a batch has begun")


def test_a_query_stops_once_spark_has_completed_the_last_batch() -> None:
    answers = [False, False, True]

    with BatchGate().between_batches(lambda: answers.pop(0)):
        assert answers == []


def test_a_batch_that_fails_lets_the_next_one_begin() -> None:
    gate = BatchGate()
    with pytest.raises(ZeroDivisionError), gate.batch():
        raise ZeroDivisionError

    with gate.batch():
        pass
