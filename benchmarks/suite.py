"""One run of the benchmarks: services, topic, warm-up, rounds, and the results."""

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import freshness
from benchmarks.approaches import APPROACHES, WorkerProcesses
from benchmarks.commits import TABLES, commit_seconds
from benchmarks.machine import short_commit, this_machine
from benchmarks.results import CommitTimes, FreshnessMeasurement, Measurement, Results
from benchmarks.traffic import Filled, fill
from benchmarks.workload import ApproachResult, Workload
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import JARS as KAFKA_JARS
from tools.embedded.service import REPOSITORY, fetched

COMMITS, FRESHNESS = "commits", "freshness"
NAMES = (*APPROACHES, COMMITS, FRESHNESS)
SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"
_TOPIC, _WARM_UP_TOPIC = "benchmark", "benchmark-warm-up"
_WARM_UP_SHARE, _WARM_UPS = 8, 2


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
            topic=_TOPIC,
            records=request.events,
            spark_jars=fetched(SPARK_JARS),
            directory=directory,
        )
        suite = _Suite(request, workload, say)
        filled, measurements = suite.rounds()
        commits, fresh = suite.commits(), suite.freshness()
    shutil.rmtree(directory)
    return Results(
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        events=request.events,
        wire_bytes_per_event=round(filled.value_bytes / filled.records, 1),
        machine=this_machine(SPARK_JARS, KAFKA_JARS),
        measurements=measurements,
        commits=commits,
        freshness=fresh,
    )


@dataclass(frozen=True, slots=True)
class _Suite:
    request: SuiteRequest
    workload: Workload
    say: Callable[[str], None]

    def rounds(self) -> tuple[Filled, tuple[Measurement, ...]]:
        """Run each approach once per round, so that a machine that gets slower affects all of them alike."""
        filled, warm_up = self._topics()
        measurements = []
        with WorkerProcesses(self.request.directory / "logs") as peers:
            for _ in range(_WARM_UPS):
                for way in self.request.ways:
                    self.say(f"warm-up: {way}")
                    self._run(peers, way, warm_up)
            for number in range(1, self.request.repeats + 1):
                for way in self.request.ways:
                    outcome = self._run(peers, way, self.workload)
                    measurements.append(_measurement(way, number, outcome))
                    self.say(f"round {number}: {way}: {measurements[-1].rate:,.0f} records/s")
        return filled, tuple(measurements)

    def _topics(self) -> tuple[Filled, Workload]:
        self.say(f"filling the topic with {self.request.events:,} events")
        servers, registry = self.workload.bootstrap_servers, self.workload.registry_url
        filled = fill(servers, registry, _TOPIC, self.request.events)
        few = fill(servers, registry, _WARM_UP_TOPIC, max(self.request.events // _WARM_UP_SHARE, 1))
        return filled, replace(self.workload, topic=_WARM_UP_TOPIC, records=few.records)

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


def _measurement(way: str, number: int, outcome: ApproachResult) -> Measurement:
    return Measurement(
        way=way,
        round=number,
        records=outcome.records,
        lap=outcome.lap,
        trigger_seconds=outcome.trigger_seconds,
        batches=outcome.batches,
        files=outcome.files,
        game_table_bytes=outcome.game_table_bytes,
    )
