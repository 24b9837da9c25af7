"""A lakehouse for one test, and the real ingest job as a child process."""

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.ledger.reconciliation import Reconciliation, reconcile
from gamelake.model.failpoints import Failpoint
from gamelake.objects.store import Location, Store
from gamelake.observability.lineage.flow import RunKind
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.settings import GoldSettings
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.session import Sessions
from gamelake.streaming.driver.runner import TriggerMode
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.files.settings import FilesSettings
from jobs import gold, ingest_events, ingest_files, live_ops
from tests.embedded.skewed_clock import SkewedClock
from tests.support.eventually import eventually
from tools.embedded.java import spark_environment

ROOT = Path(__file__).parents[2]
GAMES = """\
unlisted_games: own_table
games:
  - name: archery
    match: [Archery]
  - name: bingo
    match: [Bingo]
"""
_JOB_SECONDS = 300
# A JVM that one test starts meets each plan once: compiling it costs a quarter of the JVM's time, and is for runs in
# this process, whose JVM lives longer.
_NO_CODE_GENERATION = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"


def _read_to_the_end(job: str, variables: Mapping[str, str], sessions: Sessions) -> None:
    """Run a job in this process."""
    stop, mode = Event(), TriggerMode.AVAILABLE_NOW
    match job:
        case "ingest_events":
            ingest_events.stream_job(IngestSettings.from_env(variables)).run(sessions, stop, mode)
        case "ingest_files":
            ingest_files.stream_job(FilesSettings.from_env(variables)).run(sessions, stop, mode)
        case "live_ops":
            live_ops.stream_job(LiveOpsSettings.from_env(variables)).run(sessions, stop, mode)
        case "gold":
            with gold.keeping(GoldSettings.from_env(variables), sessions, RunKind.BATCH) as keeper:
                failed = [each for each in keeper.once() if not isinstance(each, Refreshed)]
            assert failed == []
        case _:
            raise ValueError(f"{job} is not run in this process")


@dataclass(slots=True)
class Job:
    """A running job."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> int:
        """Its exit code, once it has ended; after a timeout it is killed."""
        try:
            return self.process.wait(_JOB_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def terminate(self) -> int:
        """Terminate it. Return its exit code."""
        self.process.terminate()
        return self.wait()

    def log_text(self) -> str:
        return self.log.read_text()


@dataclass(slots=True)
class Lakehouse:
    """Tables in a folder, fed by a topic.

    With `spark`, which gives this process's Spark session, `ingest` runs a job in this process: starting another takes
    longer than all that most tests have the job do.
    """

    directory: Path
    bootstrap_servers: str
    registry_url: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict)
    spark: Callable[[], SparkSession] | None = None

    def __post_init__(self) -> None:
        """Write a games contract."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.games_file.write_text(GAMES)

    @property
    def games_file(self) -> Path:
        """The path of the contract; a test may replace it."""
        return self.directory / "games.yaml"

    @property
    def log(self) -> Path:
        """The log of all jobs that were started."""
        return self.directory / "job.log"

    @property
    def store(self) -> Store:
        return Store(Location(uri=f"file://{self.directory}/lake"))

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **spark_environment(),
            "GAMELAKE_LAKEHOUSE": f"file://{self.directory}/lake",
            "GAMELAKE_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "GAMELAKE_REGISTRY_URL": self.registry_url,
            "GAMELAKE_TOPIC": self.topic,
            "GAMELAKE_GAMES_FILE": str(self.games_file),
            "GAMELAKE_SPARK_JARS": str(ROOT / "build/jars/spark"),
            # Most tests do not need lineage, and start faster without it.
            "GAMELAKE_LINEAGE_SECONDS": "0",
            "SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {_NO_CODE_GENERATION}",
            **self.settings,
        }

    def start(
        self, *arguments: str, job: str = "ingest_events", kill: str = "", clock: SkewedClock | None = None
    ) -> Job:
        """Start a job, with a clock of its own if one is given."""
        environment = self.environment() | ({"GAMELAKE_FAILPOINT": kill} if kill else {})
        environment |= clock.environment(environment) if clock else {}
        command = [sys.executable, "-m", f"jobs.{job}", *arguments]
        with self.log.open("ab") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        return Job(process, self.log)

    def ingest(self, job: str = "ingest_events") -> None:
        """Have a job read its topic to the current end; `gold` reads tables."""
        if self.spark is None:
            self.ingest_in_a_process(job)
            return
        _read_to_the_end(job, self.environment(), self.session)

    def ingest_in_a_process(self, job: str = "ingest_events") -> None:
        """Have a job read its topic to the current end, always in a process of its own."""
        started = self.start("--available-now", job=job)
        assert started.wait() == 0, started.log_text()[-3000:]

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session of this process's Spark, whose Python workers start again as those of a new process do."""
        assert self.spark is not None
        spark = self.spark().newSession()
        # Spark keeps workers by their environment: another one means others, which remember nothing.
        spark.sparkContext.environment["GAMELAKE_TEST_RUN"] = uuid.uuid4().hex
        yield spark

    def ingest_killed(self, step: Failpoint, at: int = 1, job: str = "ingest_events") -> None:
        """Have a job read its topic, but be killed at a step."""
        started = self.start("--available-now", job=job, kill=f"{step}:{at}")
        assert started.wait() == -signal.SIGKILL, started.log_text()[-3000:]

    @contextmanager
    def ingesting(self) -> Iterator[Job]:
        """Run the job during the block, and end it with exit code 0."""
        job = self.start()
        try:
            yield job
            assert job.terminate() == 0, job.log_text()[-3000:]
        finally:
            job.process.kill()
            job.process.wait()

    def rows(self, table: str, *columns: str) -> pa.Table:
        """A table's rows now; none if it does not exist."""
        path = self.directory / "lake" / table
        if not DeltaTable.is_deltatable(str(path)):
            return pa.table({column: pa.nulls(0) for column in columns})
        return DeltaTable(path).to_pyarrow_table(columns=list(columns) or None)

    def event_ids(self, table: str = "silver/events") -> Counter[str]:
        """The number of rows of each event in a table."""
        return Counter(self.rows(table, "event_id")["event_id"].to_pylist())

    def reasons(self) -> Counter[str]:
        return Counter(self.rows("dead_letters/events", "reason")["reason"].to_pylist())

    def reconciliation(self) -> Reconciliation:
        return reconcile(self.store)

    def await_rows(self, table: str, ids: list[str]) -> None:
        """Wait until a table has all these events; the start of the job may take a minute on a busy machine."""
        eventually(lambda: set(ids) <= self.event_ids(table).keys(), timeout=180)
