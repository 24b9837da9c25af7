"""The driver of a replay: tasks find and write rows that the tables lack, one commit for each table adds them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import msgspec

from gamelake.model.errors import IncompatibleSchemaError, TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import QUARANTINE, RELEASED, REPLAYED, SILVER_EVENTS, game_of
from gamelake.quality.judging import merge_judged, require_no_failures
from gamelake.recovery.replay.marks import MARKED_IN
from gamelake.recovery.replay.runs import ReplayRun, replay_run
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.task import Purpose, ReplayPlan, ReplayReport, WantedRows
from gamelake.storage.appends import columns_of
from gamelake.storage.columns import conflicts
from gamelake.storage.generations import Generation, Generations
from gamelake.storage.listing import has_log, table_paths
from gamelake.storage.manifests import Judged, Manifests, TableFiles
from gamelake.storage.reconciliation import streams_of
from gamelake.storage.replay_manifests import ReplayManifest
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables, open_table
from gamelake.streaming.decision import sum_counts
from gamelake.streaming.plan import TaskPlan, clock_now
from gamelake.streaming.table_columns import TableColumns

log = event_logger(__name__)

_ATTEMPTS = 5
_WAIT_SECONDS = 120
_POLL_SECONDS = 0.2


def settled_version(store: Store, source: str) -> int:
    """Wait until all batches that a table has are in every other table too; returns the newest version.

    Raises:
        TableNotFoundError: there is no table.
        TransientError: a batch stays partly committed, as its stream does not run.
    """
    handle = open_table(store.location, source)
    for stream in streams_of(store):
        generations = Generations(store, stream).all()
        # A new generation starts when the last batch of the former one is in all tables.
        batch = handle.transaction_version(generations[-1].app_id) if generations else None
        if batch is not None:
            _await(store, generations[-1], batch)
    return handle.version()


def _await(store: Store, generation: Generation, batch: int) -> None:
    manifest = Manifests(store, generation.stream).read(batch)
    lacking = [] if manifest is None else [entry.table for entry in manifest.tables]
    deadline = time.monotonic() + _WAIT_SECONDS
    while lacking := [table for table in lacking if not _has(store, table, generation.app_id, batch)]:
        if time.monotonic() > deadline:
            raise TransientError(
                f"batch {batch} of {generation.stream} is not in {lacking[0]} yet, its stream does not run: start the "
                "stream's job, which finishes the batch, and try again. Nothing was changed"
            )
        time.sleep(_POLL_SECONDS)


def _has(store: Store, table: str, app_id: str, batch: int) -> bool:
    taken = open_table(store.location, table).transaction_version(app_id) if has_log(store, table) else None
    return taken is not None and taken >= batch


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did, or would do: records read, rows by table, records that stay dead letters by reason.

    `quarantined` and `dropped` are rows that broke a rule, by rule; of the quarantine as source, those that stay.
    `run` is the number of the run, None if nothing was written.
    """

    source: str
    records: int
    rows: dict[str, int]
    still_dead: dict[str, int]
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    run: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The records to read again, and the tables that may get their rows; empty for all tables."""

    selection: Selection
    targets: frozenset[str] = frozenset()


class RecordReader(Protocol):
    """Reads records and runs the tasks on them, in this process or on Spark."""

    def reports(self, selection: Selection, plan: ReplayPlan, /) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records."""


@dataclass(frozen=True, slots=True)
class DecidedReplay:
    """What the tasks found and wrote."""

    reports: tuple[ReplayReport, ...]
    tables: tuple[TableFiles, ...]

    @property
    def records(self) -> int:
        """The number of records that were read."""
        return sum(report.records for report in self.reports)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows by table."""
        return sum_counts(report.rows for report in self.reports)

    @property
    def still_dead(self) -> dict[str, int]:
        """The number of records that can't become rows, by reason."""
        return sum_counts(report.still_dead for report in self.reports)

    @property
    def judged(self) -> Judged:
        """The sum of the rules' results."""
        return merge_judged(report.judged for report in self.reports)


@dataclass(frozen=True, slots=True)
class Replayer:
    """Replays into the tables of a lakehouse."""

    reader: RecordReader
    store: Store
    tables: DeltaTables
    decoding: TaskPlan
    failpoints: Failpoints

    def dry_run(self, request: ReplayRequest) -> Replayed:
        """Decode and count, and write nothing.

        Raises:
            TransientError: a batch of the stream is partly committed.
        """
        return _result(request, self._land(request, 0, Purpose.COUNT))

    def replay(self, request: ReplayRequest) -> Replayed:
        """Write the rows that the tables lack.

        Raises:
            LeaseHeldError: another process holds the revision lease.
            LeaseLostError: another process has taken over; nothing was committed.
            TransientError: a batch of the stream is partly committed.
            BrokenRuleError: a row breaks a rule with the action `fail`; nothing was committed.
        """
        with replay_run(self.store, self.tables, self.failpoints) as run:
            return self._replay(request, run)

    def _replay(self, request: ReplayRequest, run: ReplayRun) -> Replayed:
        decided = self._compatible(request, run)
        self.failpoints.reach(Failpoint.AFTER_FILES)
        require_no_failures(decided.judged)
        if decided.tables:
            run.settle(_manifest(request, decided, run.number))
        return msgspec.structs.replace(_result(request, decided), run=run.number if decided.tables else None)

    def _compatible(self, request: ReplayRequest, run: ReplayRun) -> DecidedReplay:
        """Read the records again as long as streams give the tables columns that would not take the rows."""
        for _ in range(_ATTEMPTS):
            decided = self._land(request, run.number, Purpose.WRITE)
            clashes = [entry.table for entry in decided.tables if not self._takes(entry, run.number)]
            if not clashes:
                return decided
            log.warning("replay_decided_again", reason="columns of other types", tables=clashes)
        raise IncompatibleSchemaError(f"in {_ATTEMPTS} attempts {clashes[0]} got columns of other types meanwhile")

    def _takes(self, entry: TableFiles, number: int) -> bool:
        have = self.tables.columns_for(entry, ReplayManifest(number=number).transaction.app_id)
        return have is None or not conflicts(have, columns_of(entry))

    def _land(self, request: ReplayRequest, number: int, purpose: Purpose) -> DecidedReplay:
        source = {request.selection.source: settled_version(self.store, request.selection.source)}
        versions = self.present_versions() | source
        plan = ReplayPlan(
            decoding=self.decoding,
            run=number,
            source=request.selection.source,
            targets=request.targets,
            versions=versions,
            wanted=WantedRows.MISSING,
            purpose=purpose,
        )
        return self.decide(partial(self.reader.reports, request.selection), plan)

    def present_versions(self) -> dict[str, int]:
        """The newest versions of the tables that a replay may append to."""
        others = (SILVER_EVENTS, REPLAYED, QUARANTINE, RELEASED)
        there = [name for name in table_paths(self.store) if game_of(name) or name in others]
        return {name: open_table(self.store.location, name).version() for name in there}

    def decide(self, run: Callable[[ReplayPlan], tuple[ReplayReport, ...]], plan: ReplayPlan) -> DecidedReplay:
        """Run the tasks, again if they disagree on a table's columns.

        Raises:
            IncompatibleSchemaError: the tasks could not agree on a table's columns.
        """
        known = {name: schema for name in plan.versions if (schema := self.tables.schema(name)) is not None}
        columns = TableColumns(known)
        decoding = replace(self.decoding, clock=clock_now())
        for _ in range(_ATTEMPTS):
            reports = run(replace(plan, decoding=decoding.for_tables(columns.schemas)))
            try:
                return DecidedReplay(reports, columns.agree(file for report in reports for file in report.files))
            except IncompatibleSchemaError as error:
                log.warning("replay_decided_again", error=error)
                conflict = error
        raise conflict


def _manifest(request: ReplayRequest, decided: DecidedReplay, number: int) -> ReplayManifest:
    return ReplayManifest(
        number=number,
        source=request.selection.source,
        written_at=datetime.now(UTC).isoformat(),
        records=decided.records,
        settled=decided.rows.get(MARKED_IN.get(request.selection.source, ""), 0),
        still_dead=decided.still_dead,
        tables=decided.tables,
    )


def _result(request: ReplayRequest, decided: DecidedReplay) -> Replayed:
    judged = decided.judged
    return Replayed(
        source=request.selection.source,
        records=decided.records,
        rows=decided.rows,
        still_dead=decided.still_dead,
        quarantined=judged.quarantined,
        dropped=judged.dropped,
    )
