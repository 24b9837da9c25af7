"""A Kafka consumer for services with little memory, which does not grow with the backlog."""

from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from gamelake.kafka import KafkaAccess
from gamelake.model.logs import event_logger

log = event_logger(__name__)

_POLL_SECONDS = 0.2
# The client's own memory. Kafka returns compressed batches, which the client decompresses as a whole: what one fetch
# brings may be ten times as much. A record larger than a fetch comes alone.
_BOUNDS = {
    "queued.max.messages.kbytes": 4_096,
    "queued.min.messages": 1_000,
    "fetch.max.bytes": 2**20,
    "max.partition.fetch.bytes": 2**19,
}


class BoundedConsumer(Consumer):
    """A client with bounds on its queue and its fetches, whose offsets its owner commits."""

    def __init__(self, kafka: KafkaAccess, settings: Mapping[str, str | int]) -> None:
        super().__init__({**kafka.for_clients(), "enable.auto.commit": False, **settings, **_BOUNDS})

    def records(self, most: int) -> Iterator[Message]:
        """Yield the records that have come, at most `most`; waits only for the first.

        Raises:
            KafkaException: the client has a fatal error, or Kafka does not have the offset to read.
        """
        # One by one: a list of records would be bounded in number, not in bytes.
        seconds = _POLL_SECONDS
        for _ in range(most):
            message = self.poll(seconds)
            if message is None:
                return
            if not _is_error(message):
                yield message
            seconds = 0


def _is_error(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._AUTO_OFFSET_RESET or (error.fatal() and not error.retriable()):  # noqa: SLF001 # the client's public name
        raise KafkaException(error)
    log.warning("kafka_error", error=error.str(), action="tries again")
    return True
