"""The thread that polls Kafka, with a Kafka that responds, is silent, or comes back."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from gamelake.observability.metrics.lag import Lag, OffsetSpan, Oldest
from gamelake.observability.metrics.watch import Watch
from tests.support.eventually import eventually
from tests.support.logged import logged


class FakeWindow:
    """A topic of one partition, whose Kafka may be silent."""

    def __init__(self) -> None:
        self.end = 10
        self.is_silent = False
        self.polls = 0
        self.is_closed = False

    def spans(self) -> dict[int, OffsetSpan]:
        """What there is, if it may be said."""
        self.polls += 1
        if self.is_silent:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
        return {0: OffsetSpan(0, self.end)}

    def oldest(self, starts: dict[int, int]) -> dict[int, Oldest]:
        """A record of long ago."""
        return {partition: Oldest(start, 1_000.0) for partition, start in starts.items()}

    def close(self) -> None:
        self.is_closed = True


def test_a_commit_is_followed_by_a_poll_long_before_the_next_one_is_due() -> None:
    window, lag = FakeWindow(), Lag({0: 0}, trigger_seconds=0)
    with Watch(window, lag) as watch:
        eventually(lambda: lag.behind() == {0: 10})
        window.end = 20
        watch.poll_soon()
        eventually(lambda: lag.behind() == {0: 20}, timeout=3)
    eventually(lambda: window.is_closed)


def test_while_kafka_is_silent_the_age_of_what_waits_goes_on_growing(caplog: pytest.LogCaptureFixture) -> None:
    window, lag = FakeWindow(), Lag({0: 0}, trigger_seconds=0)
    with Watch(window, lag) as watch:
        eventually(lambda: lag.behind() == {0: 10})
        seen = lag.last_poll
        window.is_silent = True
        for poll in (2, 3):
            watch.poll_soon()
            eventually(lambda poll=poll: window.polls >= poll, timeout=10)  # type: ignore[misc]
        assert lag.last_poll == seen
        assert (lag.seconds_behind(1_010), lag.seconds_behind(1_099)) == (10, 99)
        window.is_silent = False
        watch.poll_soon()
        eventually(lambda: lag.last_poll > seen, timeout=10)

    assert len(logged(caplog, "topic_end_unknown")) == 1
