"""One run of the benchmarks: services, topic, warm-up, rounds, and the results."""

import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import freshness
from benchmarks.approaches import APPROACHES, BenchmarkTopic, WorkerProcesses
from benchmarks.commits import TABLES, commit_seconds
from benchmarks.long_events import fill_with_long_events
from benchmarks.machine import short_commit, this_machine
from benchmarks.results import CommitTimes, FreshnessMeasurement, Measurement, Results
from benchmarks.traffic import fill
from benchmarks.workload import ApproachResult, Workload
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import JARS as KAFKA_JARS
from tools.embedded.service import REPOSITORY, fetched

COMMITS, FRESHNESS = "commits", "freshness"
NAMES = (*APPROACHES, COMMITS, FRESHNESS)
SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"
_WARM_UP_SHARE, _WARM_UPS = 8, 2
# The events of one kilobyte are six times as long, so half as many are enough.
_LONG_SHARE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """What to measure, and the directory for temporary files."""

    events: int
    repeats: int
    names: tuple[str, ...]
    directory: Path

    @property
    def ways(self) -> tuple[str, ...]:
        """The approaches among the names, in the order of a round."""
        return tuple(name for name in APPROACHES if name in self.names)


def run(request: SuiteRequest, say: Callable[[str], None]) -> Results:
    """Run the requested benchmarks; only logs are left in the directory."""
    measured_at = datetime.now(UTC)
    directory = request.directory / uuid.uuid4().hex[:8]
    with EmbeddedServices(directory / "services") as services:
        workload = Workload(
            bootstrap_servers=services.kafka.bootstrap_servers,
            registry_url=services.registry.url,
            kafka_pid=services.kafka.process.pid,
            topic=BenchmarkTopic.EVENTS,
            records=request.events,
            spark_jars=fetched(SPARK_JARS),
            directory=directory,
        )
        suite = _Suite(request, workload, say)
        topics = suite.topics()
        measurements = suite.rounds(topics)
        commits, fresh = suite.commits(), suite.freshness()
    shutil.rmtree(directory)
    events = topics[BenchmarkTopic.EVENTS].whole
    return Results(
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        events=request.events,
        wire_bytes_per_event=round(events.value_bytes / events.records, 1),
        machine=this_machine(SPARK_JARS, KAFKA_JARS),
        measurements=measurements,
        commits=commits,
        freshness=fresh,
    )


@dataclass(frozen=True, slots=True)
class _FilledTopic:
    """The workload of a topic, and that of a smaller topic of the same events."""

    whole: Workload
    warm_up: Workload


@dataclass(frozen=True, slots=True)
class _Suite:
    request: SuiteRequest
    workload: Workload
    say: Callable[[str], None]

    def topics(self) -> Mapping[BenchmarkTopic, _FilledTopic]:
        """Fill the topic of all events, and others that a requested approach reads."""
        needed = {BenchmarkTopic.EVENTS, *(APPROACHES[way].topic for way in self.request.ways)}
        return {topic: self._filled(topic) for topic in BenchmarkTopic if topic in needed}

    def _filled(self, topic: BenchmarkTopic) -> _FilledTopic:
        events = self.request.events // (_LONG_SHARE if topic is BenchmarkTopic.LONG_EVENTS else 1)
        self.say(f"filling the topic {topic} with {events:,} events")
        return _FilledTopic(
            self._fill(topic, topic, events), self._fill(topic, f"{topic}-warm-up", max(events // _WARM_UP_SHARE, 1))
        )

    def _fill(self, kind: BenchmarkTopic, topic: str, events: int) -> Workload:
        fill_topic = fill_with_long_events if kind is BenchmarkTopic.LONG_EVENTS else fill
        filled = fill_topic(self.workload.bootstrap_servers, self.workload.registry_url, topic, events)
        return replace(self.workload, topic=topic, records=filled.records, value_bytes=filled.value_bytes)

    def rounds(self, topics: Mapping[BenchmarkTopic, _FilledTopic]) -> tuple[Measurement, ...]:
        """Run each approach once per round, so that a machine that gets slower affects all of them alike."""
        measurements = []
        with WorkerProcesses(self.request.directory / "logs") as peers:
            for _ in range(_WARM_UPS):
                for way in self.request.ways:
                    self.say(f"warm-up: {way}")
                    self._run(peers, way, topics[APPROACHES[way].topic].warm_up)
            for number in range(1, self.request.repeats + 1):
                for way in self.request.ways:
                    workload = topics[APPROACHES[way].topic].whole
                    measurements.append(_measurement(way, number, workload, self._run(peers, way, workload)))
                    self.say(f"round {number}: {way}: {measurements[-1].rate:,.0f} records/s")
        return tuple(measurements)

    def _run(self, peers: WorkerProcesses, way: str, workload: Workload) -> ApproachResult:
        directory = self._fresh_directory()
        outcome = peers.run(way, replace(workload, directory=directory))
        shutil.rmtree(directory)
        return outcome

    def commits(self) -> tuple[CommitTimes, ...]:
        """Measure commits, if requested."""
        if COMMITS not in self.request.names:
            return ()
        self.say(f"committing to {TABLES} tables")
        rounds = range(1, self.request.repeats + 1)
        return tuple(
            CommitTimes(round=number, tables=TABLES, seconds=commit_seconds(self._fresh_directory()))
            for number in rounds
        )

    def freshness(self) -> tuple[FreshnessMeasurement, ...]:
        """Measure freshness, if requested."""
        if FRESHNESS not in self.request.names:
            return ()
        found = []
        for number in range(1, self.request.repeats + 1):
            found.append(freshness.measure(replace(self.workload, directory=self._fresh_directory()), number))
            self.say(f"round {number}: freshness: 95 % of the events within {found[-1].p95:.2f} s")
        return tuple(found)

    def _fresh_directory(self) -> Path:
        directory = self.workload.directory / uuid.uuid4().hex[:8]
        directory.mkdir(parents=True)
        return directory


def _measurement(way: str, number: int, workload: Workload, outcome: ApproachResult) -> Measurement:
    return Measurement(
        way=way,
        round=number,
        records=outcome.records,
        lap=outcome.lap,
        trigger_seconds=outcome.trigger_seconds,
        batches=outcome.batches,
        files=outcome.files,
        game_table_bytes=outcome.game_table_bytes,
        value_bytes=round(workload.value_bytes * outcome.records / workload.records),
    )
