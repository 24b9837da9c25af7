"""A running query ends with its own error, or between two batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from gamelake.model.errors import AnotherDriverError, GamelakeError, OffsetGapError, StoreError
from gamelake.streaming.driver import runner
from tests.support.failing import failing


@dataclass(frozen=True)
class Throwable:
    """An exception of the JVM."""

    name: str
    condition: str = ""
    cause: "Throwable | None" = None

    def getClass(self) -> "Throwable":  # noqa: N802 # Java's name
        return self

    def getName(self) -> str:  # noqa: N802 # Java's name
        return self.name

    def getCondition(self) -> str:  # noqa: N802 # Spark's name
        return self.condition

    def getCause(self) -> "Throwable | None":  # noqa: N802 # Java's name
        return self.cause


class Query:
    """A query that ends with an error, or runs until it is stopped."""

    def __init__(self, error: str = "", throwable: Throwable | None = None) -> None:
        self._error = error
        self._throwable = throwable
        self.stopped = False

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 # Spark's name
        """Fail with the error, if there is one."""
        assert timeout
        if self._error:
            error = StreamingQueryException(self._error)
            error._origin = self._throwable  # type: ignore[attr-defined] # noqa: SLF001 # as pyspark does
            raise error
        return False


class Batches:
    """A batch function that notes whether the query was stopped between two batches."""

    def __init__(self, failure: GamelakeError | None = None) -> None:
        self.failure = failure
        self.between = False

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        self.between = True
        yield


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The queries that were stopped, without a Spark session."""
    stopped: list[Any] = []
    monkeypatch.setattr(runner, "stop_between_batches", lambda query, body: stopped.append((query, body)))
    return stopped


def test_the_error_of_the_batch_ends_the_run() -> None:
    failure = StoreError("the store is away")
    with pytest.raises(StoreError, match="the store is away"):
        runner.run_until(Event(), Query("wrapped by Spark"), Batches(failure))  # type: ignore[arg-type] # no Spark


KAFKA = "org.apache.spark.sql.kafka010.KafkaIllegalStateException"


def test_records_that_kafka_has_deleted_are_an_offset_gap() -> None:
    loss = Throwable("java.lang.Exception", cause=Throwable(KAFKA, "KAFKA_DATA_LOSS.PARTITIONS_DELETED"))
    with pytest.raises(OffsetGapError, match="--skip-lost"):
        runner.run_until(Event(), Query("failed", loss), Batches())  # type: ignore[arg-type] # no Spark


@pytest.mark.parametrize("throwable", [Throwable("KAFKA_DATA_LOSS"), Throwable(KAFKA, "LOST_TOPIC_PARTITIONS"), None])
def test_an_error_that_only_mentions_deleted_records_stays_as_it_is(throwable: Throwable | None) -> None:
    with pytest.raises(StreamingQueryException):
        runner.run_until(Event(), Query("KAFKA_DATA_LOSS", throwable), Batches())  # type: ignore[arg-type] # no Spark


@pytest.mark.parametrize(
    "throwable",
    [
        Throwable("org.apache.spark.SparkConcurrentModificationException", "_LEGACY_ERROR_TEMP_2207"),
        Throwable("org.apache.spark.SparkException", "CONCURRENT_STREAM_LOG_UPDATE"),
    ],
)
def test_a_log_of_the_checkpoint_that_another_query_writes_too_means_two_drivers(throwable: Throwable) -> None:
    query: Any = Query("failed", Throwable("java.lang.Exception", cause=throwable))
    with pytest.raises(AnotherDriverError, match="two drivers run"):
        runner.run_until(Event(), query, Batches())


def test_other_errors_of_spark_are_classified_by_the_caller() -> None:
    query: Any = Query("out of disk")
    with pytest.raises(StoreError, match="out of disk"):
        runner.run_until(Event(), query, Batches(), classify=lambda error: StoreError(str(error)))


def test_a_stopped_query_is_polled_and_ends_between_two_batches(stops: list[Any]) -> None:
    stop, query, body, polls = Event(), Query(), Batches(), []

    def on_poll() -> None:
        polls.append(1)
        if len(polls) == 2:
            stop.set()

    runner.run_until(stop, query, body, on_poll)  # type: ignore[arg-type] # no Spark

    assert len(polls) == 2
    assert stops == [(query, body)]


def test_an_error_while_polling_ends_the_run(stops: list[Any]) -> None:
    with pytest.raises(StoreError, match="the source is away"):
        runner.run_until(Event(), Query(), Batches(), failing(StoreError("the source is away")))  # type: ignore[arg-type] # no Spark
    assert stops == []
