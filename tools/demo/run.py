"""The run: starts all programs, waits until the tables have all records that were sent, and stops the programs."""

import gc
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaException

from gamelake.contract.games import load_games
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.reconciliation import Reconciliation, reconcile, streams_of
from gamelake.objects.store import Store
from tools.demo import programs
from tools.demo.figures import RunSample
from tools.demo.options import DemoError, DemoOptions, DemoPaths
from tools.demo.progress import BatchLogLine, JobLog, RunClock, RunProgress, TopicEnd
from tools.demo.screen import Screen
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import create_topic
from tools.embedded.process import ChildProcess, ServiceUnhealthyError, tail_of
from tools.embedded.service import CONTRACTS

POLL_SECONDS = 0.2
LONGEST_STALL = timedelta(minutes=3)
TIME_TO_END = timedelta(seconds=60)
# After Ctrl-C the running batch has this long to end.
TIME_TO_GIVE_UP = timedelta(seconds=15)

# A stream, its checkpoint generation and the batch's id.
BatchKey = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The records of a run, for its evaluation.

    Attributes:
        before: the reconciliation of the lakehouse after the earlier runs.
        services_ready: seconds since the start, as `simulator_started`.
    """

    clock: RunClock
    before: Reconciliation
    batches: tuple[tuple[BatchLogLine, BatchManifest], ...]
    samples: tuple[RunSample, ...]
    services_ready: float
    simulator_started: float


class DemoRun:
    """One run of the demo: Kafka, registry, gateway, ingest job and simulators, until the last record is committed."""

    def __init__(self, options: DemoOptions, paths: DemoPaths, seed: int, screen: Screen) -> None:
        self._options = options
        self._places = paths
        self._seed = seed
        self._screen = screen
        self._store = Store(paths.lakehouse)
        self._services = EmbeddedServices(paths.directory)
        self._gateway = programs.gateway(paths, self._services, _names_of_games())
        self._clock = RunClock()
        self._job_log = JobLog(paths.job_log, {batch for _, batch in _batch_keys(self._store)})

    def record(self) -> Recording:
        """Run to the end; all programs are stopped, also after an error.

        Raises:
            DemoError: a program failed, or the ingest job made no progress.
            ServiceError: a service ended unexpectedly, or did not become healthy.
        """
        before = reconcile(self._store)
        with ExitStack() as running:
            topic_end = self._start_services(running)
            ready = self._clock.now()
            self._gateway.launch()
            running.callback(self._gateway.stop)
            job = ChildProcess(programs.ingest_job(self._options, self._places, self._services))
            running.callback(_give_up, job)
            before = self._finish_earlier_run(before, topic_end, job)
            known = set(_batch_keys(self._store))
            self._gateway.wait_until_healthy()
            simulators = self._start_simulators(running)
            started = self._clock.now()
            self._screen.print_line(f"Simulating {self._options.events:,} events of {self._options.games} games")
            progress = self._progress(topic_end, before, self._options.events)
            self._follow(progress, job, simulators)
            self._end(job)
        return Recording(
            clock=self._clock,
            before=before,
            batches=self._batches(progress.batches, known),
            samples=tuple(progress.samples),
            services_ready=ready,
            simulator_started=started,
        )

    def _start_simulators(self, running: ExitStack) -> list[ChildProcess]:
        started = []
        for program in (
            programs.games(self._options, self._places, self._gateway, self._seed),
            programs.old_producers(self._options, self._places, self._services, self._seed),
        ):
            started.append(ChildProcess(program))
            running.callback(started[-1].stop)
        return started

    def _start_services(self, running: ExitStack) -> TopicEnd:
        self._screen.print_line("Starting Kafka, schema registry and gateway")
        running.enter_context(self._services)
        create_topic(self._services.kafka.bootstrap_servers, programs.TOPIC, programs.PARTITIONS)
        # Without this, a client that found the topic already there would live on and report the broker's end on stderr.
        gc.collect()
        return TopicEnd(self._services.kafka.bootstrap_servers, programs.TOPIC, programs.PARTITIONS)

    def _finish_earlier_run(self, before: Reconciliation, topic_end: TopicEnd, job: ChildProcess) -> Reconciliation:
        """Let the job finish what an interrupted run left; returns the reconciliation after that."""
        left = topic_end.records() - before.records
        if not left and not before.problems:
            return before
        self._screen.print_line(f"Finishing an interrupted run: {left:,} records")
        progress = self._progress(topic_end, before, left)
        self._follow(progress, job, ())
        deadline = time.monotonic() + TIME_TO_END.total_seconds()
        while (settled := reconcile(self._store)).problems:
            if time.monotonic() > deadline:
                raise DemoError("the tables of earlier runs do not reconcile:\n" + "\n".join(settled.problems))
            job.raise_if_ended()
            time.sleep(POLL_SECONDS)
        return settled

    def _progress(self, topic_end: TopicEnd, before: Reconciliation, goal: int) -> RunProgress:
        return RunProgress(
            clock=self._clock,
            job_log=self._job_log,
            topic_end=topic_end,
            store=self._store,
            taken_before=before.records,
            goal=goal,
        )

    def _follow(self, progress: RunProgress, job: ChildProcess, simulators: Sequence[ChildProcess]) -> None:
        """Wait until the simulators have ended and everything that they sent is committed."""
        # All of them are checked each time: one may have failed while another still runs.
        while False in [_has_ended_well(simulator) for simulator in simulators]:
            self._poll(progress, job)
        # Only a sample that is newer than the end of the simulators has all records.
        progress.sample()
        while progress.lag:
            self._poll(progress, job)
            if progress.lag < 0:
                raise DemoError(f"the job has committed {-progress.lag:,} records more than Kafka has")
        progress.sample()

    def _poll(self, progress: RunProgress, job: ChildProcess) -> None:
        time.sleep(POLL_SECONDS)
        self._services.raise_if_ended()
        self._gateway.process.raise_if_ended()
        job.raise_if_ended()
        try:
            progress.poll()
        except KafkaException as error:
            self._services.raise_if_ended()
            raise DemoError(f"Kafka is not available: {error}") from error
        self._screen.show(progress.status())
        if progress.stalled_for > LONGEST_STALL:
            raise DemoError(f"the job has committed nothing for {LONGEST_STALL}; {tail_of(self._places.job_log)}")

    def _end(self, job: ChildProcess) -> None:
        self._screen.rest()
        code = job.finish(TIME_TO_END)
        if code != 0:
            raise DemoError(f"the job ended with exit code {code}; {tail_of(self._places.job_log)}")

    def _batches(
        self, lines: list[BatchLogLine], known: set[BatchKey]
    ) -> tuple[tuple[BatchLogLine, BatchManifest], ...]:
        new = sorted(_batch_keys(self._store) - known)
        manifests = {batch: Manifests(self._store, stream).read(batch) for stream, batch in new}
        pairs = tuple((line, manifest) for line in lines if (manifest := manifests.get(line.batch)) is not None)
        if len(pairs) != len(new) or len(pairs) != len(lines):
            raise DemoError(f"the job logged {len(lines)} batches and wrote {len(new)} manifests")
        return pairs


def _names_of_games() -> list[str]:
    return [game.name for game in load_games(CONTRACTS / "games.yaml").games]


def _batch_keys(store: Store) -> set[BatchKey]:
    return {(stream, batch) for stream in streams_of(store) for batch in Manifests(store, stream).batches()}


def _has_ended_well(simulator: ChildProcess) -> bool:
    code = simulator.exit_code()
    if code:
        name, log_file = simulator.program.name, simulator.program.log_file
        raise DemoError(f"{name} ended with exit code {code}; {tail_of(log_file)}")
    return code is not None


def _give_up(job: ChildProcess) -> None:
    """Stop the job; its running batch may end first if that does not take long. Killed, it loses nothing either."""
    try:
        with suppress(ServiceUnhealthyError):
            job.finish(TIME_TO_GIVE_UP)
    finally:
        job.kill()
