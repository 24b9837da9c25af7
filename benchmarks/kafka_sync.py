"""Measures the cost of Kafka syncing before it acknowledges, on the disk of build: `python -m benchmarks.kafka_sync`.

One broker has two topics, one synced before each acknowledgement and one left to the kernel. Rounds of both alternate,
so that a machine that slows down slows both alike.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Producer

from benchmarks.harness import Benchmark, Run, alternate, main, option
from benchmarks.results import Measurement, Values
from services.gateway.kafka_producer import PRODUCER_SETTINGS
from tools.embedded import EmbeddedKafka
from tools.embedded.kafka import SYNCED, UNSYNCED_TOPIC, create_topic

_PARTITIONS = 6
_RECORD = bytes(range(165))  # as large as the simulator's events
_REQUEST = 50  # events of one request to the gateway
_SENT_AT_ONCE = 400_000
_REQUESTS_PER_SECOND, _SECONDS = 100, 6
_WARM_UP = 50_000
_TOPICS = {"synced": {}, "left to the kernel": UNSYNCED_TOPIC}


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Options of the benchmark."""

    rounds: int = option(3, "rounds of both topics")


def measure(run: Run[SyncSettings]) -> Iterator[Measurement]:
    """Send to both topics in turn."""
    with EmbeddedKafka(run.folder / "kafka", SYNCED) as kafka:
        topics = {}
        for name, config in _TOPICS.items():
            topic = name.replace(" ", "-")
            create_topic(kafka.bootstrap_servers, topic, _PARTITIONS, config)
            topics[name] = partial(_round, _Requests(kafka.bootstrap_servers, topic))
        yield from alternate("records are", topics, run.settings.rounds, run.emit)


def _round(requests: "_Requests", number: int) -> Values:
    """Records per second when all are sent at once, and milliseconds until requests at a rate are acknowledged."""
    if number < 1:
        return {"records/s, sent at once": requests.send_at_once(_WARM_UP)}
    rate, seconds = requests.send_at_once(_SENT_AT_ONCE), sorted(requests.send_at_a_rate())
    latencies = {f"p{share} ms": seconds[share * (len(seconds) - 1) // 100] * 1000 for share in (50, 95, 99)}
    return {"records/s, sent at once": rate, **latencies}


class _Requests:
    """Sends records as the gateway does: all of a request in one call, keys in turn."""

    def __init__(self, servers: str, topic: str) -> None:
        self._producer = Producer(
            {**PRODUCER_SETTINGS, "bootstrap.servers": servers, "queue.buffering.max.messages": 2 * _SENT_AT_ONCE}
        )
        self._topic = topic
        self._key = 0

    def send_at_once(self, records: int) -> float:
        """Records per second, until all are acknowledged."""
        started = time.perf_counter()
        for _ in range(records // _REQUEST):
            self._send(None)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0  # noqa: S101 - a benchmark of lost records would be none
        return records / (time.perf_counter() - started)

    def send_at_a_rate(self) -> Sequence[float]:
        """Seconds of each request."""
        started, seconds = time.perf_counter(), list[float]()
        for number in range(_REQUESTS_PER_SECOND * _SECONDS):
            due = started + number / _REQUESTS_PER_SECOND
            while (left := due - time.perf_counter()) > 0:
                self._producer.poll(min(left, 0.001))
            self._send(seconds)
        assert self._producer.flush(60) == 0  # noqa: S101 - see above
        return seconds

    def _send(self, seconds: list[float] | None) -> None:
        sent, left = time.perf_counter(), [_REQUEST]

        def acknowledged(error: object, _message: object) -> None:
            assert error is None  # noqa: S101 - see above
            left[0] -= 1
            if not left[0] and seconds is not None:
                seconds.append(time.perf_counter() - sent)

        self._key += 1
        records = [{"key": f"player-{self._key + number}", "value": _RECORD} for number in range(_REQUEST)]
        self._producer.produce_batch(self._topic, records, on_delivery=acknowledged)


BENCHMARK = Benchmark(
    name="kafka-sync",
    measures="Measure the cost of Kafka syncing before it acknowledges, on the disk of build.",
    settings=SyncSettings(),
    quick=SyncSettings(rounds=1),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
