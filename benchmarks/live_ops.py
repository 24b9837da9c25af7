"""Measures the delay from an event to its player's published state: `python -m benchmarks.live_ops`.

Kafka, registry, job, and the simulator at a steady rate run on this machine. An event counts as published when the last
state of its batch is in the topic; the offsets in the manifests show which batch has an event.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
from confluent_kafka import Consumer, Message, TopicPartition
from google.protobuf.message_factory import GetMessageClass

from benchmarks.goals import Goal, figure_of
from benchmarks.harness import Benchmark, Run, main
from benchmarks.results import Measurement, percentiles
from benchmarks.steady import FIRST_EVENTS, SteadyRate, running_jobs, simulate, test_bed, wait_for
from benchmarks.traffic import PARTITIONS
from benchmarks.workload import Workload, location_of
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.arrays import Floats
from gamelake.objects.store import Store
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from gamelake.schemas.framing import HEADER_BYTES
from gamelake.serving.live_ops.query import PLAYER_STATE_PROTO
from tools.embedded.kafka import create_topic

_DELAY = "delay"
_PLAYERS, _SIGNALS = "live-ops.player-state", "live-ops.signals"
_GAMES, _WARM_UP = 30, timedelta(seconds=15)
_PATIENCE = timedelta(minutes=3)


def measure(run: Run[SteadyRate]) -> Iterator[Measurement]:
    """Run the job and the simulator, then compute the delay of each event from the topics.

    Raises:
        RecordsMissingError: the job did not commit everything in time.
        ServiceError: a program ended.
    """
    events = run.settings.rate * run.settings.seconds
    with test_bed(run.folder) as workload:
        create_topic(workload.bootstrap_servers, _PLAYERS, PARTITIONS, {"cleanup.policy": "compact"})
        create_topic(workload.bootstrap_servers, _SIGNALS, 1)
        with running_jobs(workload, "live_ops") as jobs:
            simulate(workload, FIRST_EVENTS, rate=0, games=_GAMES)
            wait_for(FIRST_EVENTS, partial(_records, workload), jobs, _PATIENCE)
            steady_since = time.time() + _WARM_UP.total_seconds()
            simulate(workload, events, rate=run.settings.rate, games=_GAMES)
            wait_for(FIRST_EVENTS + events, partial(_records, workload), jobs, _PATIENCE)
        took = _took(workload, steady_since)
    values = percentiles(took) | {"events": len(took)}
    yield Measurement(part=_DELAY, subject=_PLAYERS, values=values)


def _took(workload: Workload, since: float) -> Floats:
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


BENCHMARK = Benchmark(
    name="live-ops",
    measures="Measure the delay from an event to its player's published state.",
    settings=SteadyRate(),
    quick=SteadyRate(rate=2_000, seconds=25),
    measure=measure,
    goals=(Goal("delay, p95", (5,), figure_of(_DELAY, _PLAYERS, "p95 s"), " s", at_most=True),),
    runs_spark=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
