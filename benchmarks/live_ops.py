"""Measures the delay from an event to its player's published state: `python -m benchmarks.live_ops`.

Kafka, registry, job, and the simulator at a steady rate run on this machine. An event counts as published when the last
state of its batch is in the topic; the offsets in the manifests show which batch has an event.
"""

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, Message, TopicPartition
from google.protobuf.message_factory import GetMessageClass

from benchmarks.steady import FIRST_EVENTS, running_jobs, simulate, test_bed, wait_for
from benchmarks.traffic import PARTITIONS
from benchmarks.workload import RecordsMissingError, Workload, location_of
from gamelake.model.errors import GamelakeError
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from gamelake.schemas.framing import HEADER_BYTES
from gamelake.serving.live_ops.query import PLAYER_STATE_PROTO
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Store
from tools.embedded import ServiceError
from tools.embedded.java import spark_environment
from tools.embedded.kafka import create_topic

_PLAYERS, _SIGNALS = "live-ops.player-state", "live-ops.signals"
_GAMES, _WARM_UP = 30, timedelta(seconds=15)
_PATIENCE = timedelta(minutes=3)


def measure(workload: Workload, rate: int, seconds: int) -> dict[str, float]:
    """Run the job and the simulator, then compute the delay of each event from the topics.

    Raises:
        RecordsMissingError: the job did not commit everything in time.
        ServiceError: a program ended.
    """
    create_topic(workload.bootstrap_servers, _PLAYERS, PARTITIONS, {"cleanup.policy": "compact"})
    create_topic(workload.bootstrap_servers, _SIGNALS, 1)
    with running_jobs(workload, "live_ops") as jobs:
        simulate(workload, FIRST_EVENTS, rate=0, games=_GAMES)
        wait_for(FIRST_EVENTS, partial(_records, workload), jobs, _PATIENCE)
        steady_since = time.time() + _WARM_UP.total_seconds()
        simulate(workload, rate * seconds, rate=rate, games=_GAMES)
        wait_for(FIRST_EVENTS + rate * seconds, partial(_records, workload), jobs, _PATIENCE)
    took = _took(workload, steady_since)
    p50, p95, most = np.percentile(took, [50, 95, 100])
    return {"rate": rate, "seconds": seconds, "events": len(took), "p50": p50, "p95": p95, "max": most}


def _took(workload: Workload, since: float) -> npt.NDArray[np.float64]:
    """Seconds from each event's arrival in Kafka to that of the last state of its batch."""
    published = _published(workload)
    arrived: dict[int, list[float]] = defaultdict(list)
    for message in _messages(workload, workload.topic):
        arrived[message.partition() or 0].append(message.timestamp()[1] / 1000)
    took = []
    for manifest in _manifests(workload):
        for taken in manifest.offsets:
            moments = np.array(arrived[taken.partition][taken.first : taken.last + 1])
            if manifest.state is not None:
                took.append(published[manifest.state.moment] - moments[moments >= since])
    return np.concatenate(took)


def _published(workload: Workload) -> dict[int, float]:
    """Time of the last state of each batch, by the batch's timestamp in microseconds."""
    state = GetMessageClass(message_at(compile_sources({ROOT_FILE: PLAYER_STATE_PROTO.read_text()}), (0,)))
    newest: dict[int, float] = {}
    for message in _messages(workload, _PLAYERS):
        state_message: Any = state.FromString((message.value() or b"")[HEADER_BYTES:])
        moment = state_message.as_of.ToMicroseconds()
        newest[moment] = max(newest.get(moment, 0.0), message.timestamp()[1] / 1000)
    return newest


def _messages(workload: Workload, topic: str) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": workload.bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
        }
    )
    places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    ends = {place.partition: consumer.get_watermark_offsets(place)[1] for place in places}
    consumer.assign(places)
    left = {partition for partition, end in ends.items() if end}
    while left:
        for message in consumer.consume(10_000, 10):
            yield message
            if (message.offset() or 0) + 1 >= ends[message.partition() or 0]:
                left.discard(message.partition() or 0)
    consumer.close()


def _manifests(workload: Workload) -> list[BatchManifest]:
    return Manifests(Store(location_of(workload)), "live_ops").last(1_000_000)


def _records(workload: Workload) -> int:
    return sum(manifest.records for manifest in _manifests(workload))


def main() -> int:
    """Measure, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_ops", description=__doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="events per second; default: %(default)s")
    parser.add_argument("--seconds", type=int, default=90, help="how long; default: %(default)s")
    arguments = parser.parse_args()
    os.environ |= spark_environment()
    try:
        with test_bed("live-ops") as workload:
            found = measure(workload, arguments.rate, arguments.seconds)
    except (GamelakeError, ServiceError, RecordsMissingError) as error:
        print(f"benchmarks.live_ops: {error}", file=sys.stderr)
        return 1
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
