"""Measures the cost of Kafka syncing before it acknowledges, on the disk of build: `python -m benchmarks.kafka_sync`.

One broker has two topics, one synced before each acknowledgement and one left to the kernel. Rounds of both alternate,
so that a machine that slows down slows both alike.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

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
class Round:
    """One round of one topic.

    Attributes:
        records_per_second: of records that are sent all at once.
        seconds: from each request's first record to the acknowledgement of its last, at a fixed rate.
    """

    records_per_second: float
    seconds: Sequence[float]

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the requests was acknowledged."""
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))] * 1000


def main() -> None:
    """Print a table: the median of each figure over the rounds, with the least and the greatest."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka_sync", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("build"), help="on the disk to measure")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=given.directory) as folder,
        EmbeddedKafka(Path(folder) / "kafka", SYNCED) as kafka,
    ):
        rounds = _measure(kafka, given.rounds)
    print("| records are | records/s, sent at once | ms until 50 % of requests are acknowledged | 95 % | 99 % |")
    print("| --- | --- | --- | --- | --- |")
    for name, each in rounds.items():
        latencies = [_spread([one.percentile(share) for one in each], ".1f") for share in (0.5, 0.95, 0.99)]
        print(f"| {name} | {_spread([one.records_per_second for one in each], ',.0f')} | {' | '.join(latencies)} |")


def _measure(kafka: EmbeddedKafka, rounds: int) -> dict[str, list[Round]]:
    producers = {}
    for name, config in _TOPICS.items():
        topic = name.replace(" ", "-")
        create_topic(kafka.bootstrap_servers, topic, _PARTITIONS, config)
        producers[name] = _Requests(kafka.bootstrap_servers, topic)
        producers[name].send_at_once(_WARM_UP)
    measured: dict[str, list[Round]] = {name: [] for name in _TOPICS}
    for _ in range(rounds):
        for name, producer in producers.items():
            measured[name].append(Round(producer.send_at_once(_SENT_AT_ONCE), producer.send_at_a_rate()))
    return measured


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


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
