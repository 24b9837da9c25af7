"""The run itself: everything is started, watched until the tables have all that the simulator sent, and ended."""

import gc
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaException

from gamelake.model.games import load_games
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.reconciliation import Books, balance, streams_of
from gamelake.storage.store import Store
from tools.demo import programs
from tools.demo.figures import Sample
from tools.demo.options import DemoError, Options, Places
from tools.demo.progress import BatchLine, JobLog, Progress, RunClock, TopicEnd
from tools.demo.screen import Screen
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import create_topic
from tools.embedded.process import ChildProcess, tail_of

SECONDS_BETWEEN_LOOKS = 0.2
LONGEST_STALL = timedelta(minutes=3)
TIME_TO_END = timedelta(seconds=60)
# The batch that runs may end in good order; a person who has pressed Ctrl-C waits no longer than this.
TIME_TO_GIVE_UP = timedelta(seconds=15)

# A stream, its checkpoint generation and the batch's id.
BatchKey = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a run leaves to be judged.

    Args:
        before: the books as earlier runs left them.
        services_ready: in seconds since the start, like `simulator_started`.
    """

    clock: RunClock
    before: Books
    batches: tuple[tuple[BatchLine, BatchManifest], ...]
    samples: tuple[Sample, ...]
    services_ready: float
    simulator_started: float


class Run:
    """One run of the demo: Kafka, the registry, the gateway, the job and the simulators, to the last record."""

    def __init__(self, options: Options, places: Places, seed: int, screen: Screen) -> None:
        self._options = options
        self._places = places
        self._seed = seed
        self._screen = screen
        self._store = Store(places.lakehouse)
        self._services = EmbeddedServices(places.directory)
        self._gateway = programs.gateway(places, self._services, _names_of_games())
        self._clock = RunClock()
        self._job_log = JobLog(places.job_log, {batch for _, batch in _batch_keys(self._store)})

    def record(self) -> Recording:
        """Run everything to its end; whatever goes wrong, nothing is left running.

        Raises:
            DemoError: a program failed, or the job stood still.
            ServiceError: a program ended that should not have, or never answered.
        """
        before = balance(self._store)
        with ExitStack() as running:
            topic_end = self._start_services(running)
            ready = self._clock.now()
            self._gateway.launch()
            running.callback(self._gateway.stop)
            job = ChildProcess(programs.ingest_job(self._options, self._places, self._services))
            running.callback(_give_up, job)
            before = self._settled(before, topic_end, job)
            known = set(_batch_keys(self._store))
            self._gateway.wait_until_healthy()
            simulators = self._start_simulators(running)
            started = self._clock.now()
            self._screen.say(f"Simulating {self._options.events:,} events of {self._options.games} games")
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
        self._screen.say("Starting Kafka, the schema registry and the gateway")
        running.enter_context(self._services)
        create_topic(self._services.kafka.bootstrap_servers, programs.TOPIC, programs.PARTITIONS)
        # The client that found its topic there already would live on, and report the broker's end on stderr.
        gc.collect()
        return TopicEnd(self._services.kafka.bootstrap_servers, programs.TOPIC, programs.PARTITIONS)

    def _settled(self, before: Books, topic_end: TopicEnd, job: ChildProcess) -> Books:
        """The books once the job has made good what an interrupted run left undone."""
        left = topic_end.records() - before.records
        if not left and not before.problems:
            return before
        self._screen.say(f"Finishing an interrupted run: {left:,} records")
        progress = self._progress(topic_end, before, left)
        self._follow(progress, job, ())
        deadline = time.monotonic() + TIME_TO_END.total_seconds()
        while (settled := balance(self._store)).problems:
            if time.monotonic() > deadline:
                raise DemoError("the books of earlier runs do not balance:\n" + "\n".join(settled.problems))
            job.raise_if_ended()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return settled

    def _progress(self, topic_end: TopicEnd, before: Books, goal: int) -> Progress:
        return Progress(
            clock=self._clock,
            job_log=self._job_log,
            topic_end=topic_end,
            store=self._store,
            taken_before=before.records,
            goal=goal,
        )

    def _follow(self, progress: Progress, job: ChildProcess, simulators: Sequence[ChildProcess]) -> None:
        """Watch until the simulators have ended and nothing that they sent is left to take."""
        # All of them are asked each time: one may have failed while another goes on.
        while False in [_has_ended_well(simulator) for simulator in simulators]:
            self._look(progress, job)
        # Only a sample that is younger than the simulators' ends says what there is to take.
        progress.sample()
        while progress.lag:
            self._look(progress, job)
            if progress.lag < 0:
                raise DemoError(f"the job has taken {-progress.lag:,} records more than Kafka has")
        progress.sample()

    def _look(self, progress: Progress, job: ChildProcess) -> None:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        self._services.raise_if_ended()
        self._gateway.process.raise_if_ended()
        job.raise_if_ended()
        try:
            progress.look()
        except KafkaException as error:
            self._services.raise_if_ended()
            raise DemoError(f"Kafka does not answer: {error}") from error
        self._screen.show(progress.status())
        if progress.stalled_for > LONGEST_STALL:
            raise DemoError(f"the job has taken nothing for {LONGEST_STALL}; {tail_of(self._places.job_log)}")

    def _end(self, job: ChildProcess) -> None:
        self._screen.rest()
        code = job.finish(TIME_TO_END)
        if code != 0:
            raise DemoError(f"the job ended with exit code {code}; {tail_of(self._places.job_log)}")

    def _batches(self, lines: list[BatchLine], known: set[BatchKey]) -> tuple[tuple[BatchLine, BatchManifest], ...]:
        new = sorted(_batch_keys(self._store) - known)
        manifests = {batch: Manifests(self._store, stream).read(batch) for stream, batch in new}
        pairs = tuple((line, manifest) for line in lines if (manifest := manifests.get(line.batch)) is not None)
        if len(pairs) != len(new) or len(pairs) != len(lines):
            raise DemoError(f"the job told of {len(lines)} batches and left {len(new)} manifests")
        return pairs


def _names_of_games() -> list[str]:
    return [game.name for game in load_games(programs.CONTRACTS / "games.yaml").games]


def _batch_keys(store: Store) -> set[BatchKey]:
    return {(stream, batch) for stream in streams_of(store) for batch in Manifests(store, stream).batches()}


def _has_ended_well(simulator: ChildProcess) -> bool:
    code = simulator.exit_code()
    if code:
        name, log_file = simulator.program.name, simulator.program.log_file
        raise DemoError(f"{name} ended with exit code {code}; {tail_of(log_file)}")
    return code is not None


def _give_up(job: ChildProcess) -> None:
    """End a job that is no longer wanted, after its batch if that does not take long."""
    try:
        job.finish(TIME_TO_GIVE_UP)
    finally:
        job.kill()
