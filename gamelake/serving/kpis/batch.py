"""What Spark calls with each batch of changed facts: the tables are updated, or the query stops."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis import definitions
from gamelake.serving.kpis.aggregation import KpiUpdate, aggregate
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo
from gamelake.serving.kpis.generations import KpiGeneration, KpiGenerations, SourceFilesGoneError
from gamelake.serving.kpis.known_players import KnownPlayers
from gamelake.serving.kpis.source import SourceLog
from gamelake.session import java_causes
from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.leases import Lease
from gamelake.storage.store import Store

log = event_logger(__name__)

_ATTEMPTS = 10
# Conditions of Spark (common/utils, error-conditions.json) and of Delta (delta-error-classes.json).
_FILE_GONE = ("FAILED_READ_FILE", "DELTA_FILE_NOT_FOUND")


class KpiObserver(Protocol):
    """Is notified of batches; must return quickly, and must not raise."""

    def updated(self, updated: KpiUpdate, seconds: float) -> None:
        """The tables have a batch."""


class NoOpKpiObserver:
    """Ignores every batch."""

    def updated(self, updated: KpiUpdate, seconds: float) -> None:
        """Do nothing."""


def spark_error(error: Exception) -> Exception:
    """The error itself, or a SourceFilesGoneError if Spark did not find files that it was to count."""
    for cause in java_causes(error):
        if cause.class_name.endswith("FileNotFoundException") or cause.condition.startswith(_FILE_GONE):
            return SourceFilesGoneError(
                f"files of {SILVER_EVENTS} that were yet to be counted are gone: vacuumed, or deleted by hand. To "
                "count what silver holds now, start once with --rebuild"
            )
    return error


class KpiBatches:
    """The batch function of the KPI query; `failure` is what ended it."""

    def __init__(self, tables: Mapping[str, DayTable], exact: ExactUpTo, source: SourceLog, lease: Lease) -> None:
        self.observer: KpiObserver = NoOpKpiObserver()
        self.failpoints = Failpoints()
        self.failure: Exception | None = None
        self.tables = tables
        self._exact = exact
        self._known = KnownPlayers()
        self._source = source
        self._lease = lease
        self._running = Lock()

    def __call__(self, changed: DataFrame, batch: int) -> None:
        """Take a batch into the tables."""
        with self._running:
            try:
                self._take(changed, batch)
            except Exception as error:
                # Spark wraps it in errors of its own, over py4j.
                self.failure = spark_error(error)
                raise

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        """Wait for the batch that runs, and let none begin until the end of the block."""
        with self._running:
            yield

    def _take(self, changed: DataFrame, batch: int) -> None:
        self._source.remember()
        facts = changed.toArrow()
        self._lease.require()
        if facts.num_rows:
            started = time.monotonic()
            updated = self._fold(facts, batch)
            seconds = time.monotonic() - started
            log.info(
                "kpis_updated",
                batch=batch,
                facts=facts.num_rows,
                tables=len(updated.rows),
                seconds=round(seconds, 1),
            )
            self.observer.updated(updated, seconds)
        self.failpoints.reach(Failpoint.AFTER_COMMITS)

    def _fold(self, facts: pa.Table, batch: int) -> KpiUpdate:
        def attempt() -> KpiUpdate:
            try:
                return aggregate(self.tables, self._exact, facts, batch, self._known)
            except CommitConflictError:
                # An erasure, which removes rows; or another driver, which has taken the lease over.
                self._lease.require()
                raise

        return commit_with_retry("the KPI tables", _ATTEMPTS, attempt)


def kpi_tables(store: Store, generation: KpiGeneration) -> dict[str, DayTable]:
    """The tables of a generation, by name."""
    former = frozenset(each.app_id for each in KpiGenerations(store).all()) - {generation.app_id}
    return {table.name: DayTable(store, table, generation.app_id, former) for table in definitions.ALL}
