"""A lakehouse of a test's own, and the real ingest job as a child process."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.model.failpoints import Failpoint
from gamelake.storage.reconciliation import Reconciliation, reconcile
from gamelake.storage.store import Location, Store
from tests.eventually import eventually
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


@dataclass(slots=True)
class Job:
    """A job that runs."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> int:
        """Its exit code, once it has ended; one that takes for ever is killed."""
        try:
            return self.process.wait(_JOB_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def terminate(self) -> int:
        """Ask it to end; gives its exit code."""
        self.process.terminate()
        return self.wait()

    def log_text(self) -> str:
        """What it has said so far."""
        return self.log.read_text()


@dataclass(slots=True)
class Lakehouse:
    """Tables in a folder, fed by a topic."""

    directory: Path
    bootstrap_servers: str
    registry_url: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give it a games contract."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.games_file.write_text(GAMES)

    @property
    def games_file(self) -> Path:
        """The contract; a test may write another one."""
        return self.directory / "games.yaml"

    @property
    def store(self) -> Store:
        """The lakehouse's objects."""
        return Store(Location(uri=f"file://{self.directory}/lake"))

    def environment(self) -> dict[str, str]:
        """What the job is told."""
        return {
            **os.environ,
            **spark_environment(),
            "GAMELAKE_LAKEHOUSE": f"file://{self.directory}/lake",
            "GAMELAKE_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "GAMELAKE_REGISTRY_URL": self.registry_url,
            "GAMELAKE_TOPIC": self.topic,
            "GAMELAKE_GAMES_FILE": str(self.games_file),
            "GAMELAKE_SPARK_JARS": str(ROOT / "build/jars/spark"),
            # Tests that start the job many times don't wait for what only tests of lineage look at.
            "GAMELAKE_LINEAGE_SECONDS": "0",
            **self.settings,
        }

    def start(self, *arguments: str, job: str = "ingest_events", kill: str = "") -> Job:
        """Start a job."""
        log = self.directory / "job.log"
        environment = self.environment() | ({"GAMELAKE_FAILPOINT": kill} if kill else {})
        command = [sys.executable, "-m", f"jobs.{job}", *arguments]
        with log.open("ab") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        return Job(process, log)

    def ingest(self) -> None:
        """Take what the topic holds, to the end."""
        job = self.start("--available-now")
        assert job.wait() == 0, job.log_text()[-3000:]

    def ingest_killed(self, step: Failpoint, at: int = 1) -> None:
        """Take what the topic holds, but be killed at a step."""
        job = self.start("--available-now", kill=f"{step}:{at}")
        assert job.wait() == -signal.SIGKILL, job.log_text()[-3000:]

    @contextmanager
    def ingesting(self) -> Iterator[Job]:
        """Have the job run for as long as the block lasts, and end well."""
        job = self.start()
        try:
            yield job
            assert job.terminate() == 0, job.log_text()[-3000:]
        finally:
            job.process.kill()

    def rows(self, table: str, *columns: str) -> pa.Table:
        """A table's rows now; none if it does not exist."""
        path = self.directory / "lake" / table
        if not DeltaTable.is_deltatable(str(path)):
            return pa.table({column: pa.nulls(0) for column in columns})
        return DeltaTable(path).to_pyarrow_table(columns=list(columns) or None)

    def event_ids(self, table: str = "silver/events") -> Counter[str]:
        """How often each event stands in a table."""
        return Counter(self.rows(table, "event_id")["event_id"].to_pylist())

    def reasons(self) -> Counter[str]:
        """Dead letters by reason."""
        return Counter(self.rows("dead_letters/events", "reason")["reason"].to_pylist())

    def reconciliation(self) -> Reconciliation:
        """The balance of the lakehouse."""
        return reconcile(self.store)

    def await_rows(self, table: str, ids: list[str]) -> None:
        """Wait until a table has all these events; the job may be starting, which a busy machine takes a minute for."""
        eventually(lambda: set(ids) <= self.event_ids(table).keys(), timeout=180)
