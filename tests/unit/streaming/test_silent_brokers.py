"""Why a silent Kafka can't be read: by the errors since the last record, and not by those of long ago."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import GamelakeError, StartupError, TransientError
from gamelake.streaming.kafka.consumers import ConsumerError, PartitionRange
from gamelake.streaming.kafka.reader import RangeReader, ReadError

_CODE = KafkaError._AUTHENTICATION  # noqa: SLF001 # librdkafka's own codes begin with an underscore
DENIED = ConsumerError(_CODE, "SASL authentication error, three days ago")
DENIED_AGAIN = ConsumerError(_CODE, "SASL authentication error, just now")


class Consumer:
    """Returns the first record of a range, then nothing; `newest` is the client's newest error then."""

    def __init__(self, newest: ConsumerError | None) -> None:
        self._newest = newest
        self._pending: dict[int, int] = {}
        self.error: ConsumerError | None = DENIED

    def assign(self, ranges: Sequence[PartitionRange]) -> None:
        self._pending = {each.partition: each.start for each in ranges}

    def unassign(self) -> None:
        self._pending = {}

    def pending(self) -> dict[int, int]:
        return dict(self._pending)

    def take(self, records: int, size: int, seconds: float) -> tuple[pa.RecordBatch | None, list[ConsumerError]]:
        if self._pending == {0: 0}:
            self._pending = {0: 1}
        else:
            self.error = self._newest
        return None, []

    def last_error(self) -> ConsumerError | None:
        return self.error


def _error(newest: ConsumerError | None) -> GamelakeError:
    reader = RangeReader(KafkaAccess("kafka:1"), "events", 0.05, lambda *_: Consumer(newest))
    with pytest.raises(ReadError) as error:
        list(reader.read([PartitionRange(0, 0, 5)]))
    return error.value.failure.as_error()


def test_a_silent_broker_is_unavailable_although_it_has_denied_access_long_ago() -> None:
    error = _error(DENIED)

    assert isinstance(error, TransientError)
    assert "three days ago" not in str(error)


def test_a_broker_that_denies_access_now_needs_an_operator() -> None:
    error = _error(DENIED_AGAIN)

    assert isinstance(error, StartupError)
    assert "just now" in str(error)
