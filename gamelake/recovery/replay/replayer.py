"""A replay as the driver runs it: rows that the tables lack, found and written by tasks, committed once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import msgspec

from gamelake.model.errors import IncompatibleSchemaError, TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.naming import QUARANTINE, RELEASED, REPLAYED, SILVER_EVENTS, game_of
from gamelake.quality.judging import merge_judged, require_no_failures
from gamelake.recovery.replay.marks import MARKED_IN
from gamelake.recovery.replay.runs import ReplayRun, replay_run
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.task import Purpose, ReplayPlan, ReplayReport, WantedRows
from gamelake.storage.generations import Generation, Generations
from gamelake.storage.listing import has_log, table_paths
from gamelake.storage.manifests import Judged, Manifests, TableFiles
from gamelake.storage.reconciliation import streams_of
from gamelake.storage.replay_manifests import ReplayManifest
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables, open_table
from gamelake.streaming.decision import sum_counts
from gamelake.streaming.plan import TaskPlan
from gamelake.streaming.table_columns import TableColumns

_WAIT_SECONDS = 120
_LOOK_EVERY_SECONDS = 0.2


def settled_version(store: Store, source: str) -> int:
    """The newest version of a table, once all batches that it has are in every other table too.

    Raises:
        TableNotFoundError: there is no table.
        TransientError: a batch stays half committed; the stream that decided it does not run.
    """
    handle = open_table(store.location, source)
    for stream in streams_of(store):
        generations = Generations(store, stream).all()
        # A new generation begins when the last batch of the one before is in all tables.
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
                f"batch {batch} of {generation.stream} is not in {lacking[0]} yet, and nobody commits it: start the "
                "stream's job, which finishes it, and try again. Nothing was changed"
            )
        time.sleep(_LOOK_EVERY_SECONDS)


def _has(store: Store, table: str, app_id: str, batch: int) -> bool:
    taken = open_table(store.location, table).transaction_version(app_id) if has_log(store, table) else None
    return taken is not None and taken >= batch


log = logging.getLogger(__name__)

_ATTEMPTS = 5


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did, or would do: records read, rows by table that they become, what stays dead, by reason.

    `quarantined` and `dropped` are rows that broke a rule, by the rule; of the quarantine's own those that stay there.
    `run` is its number, None if nothing was written.
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
    """The records to read again, and the tables that may get their rows; all, if none is named."""

    selection: Selection
    targets: frozenset[str] = frozenset()


class RecordReader(Protocol):
    """Reads records and runs the tasks on them, here or on many machines."""

    def reports(self, selection: Selection, plan: ReplayPlan, /) -> tuple[ReplayReport, ...]:
        """Read a selection, do what the plan says."""


@dataclass(frozen=True, slots=True)
class DecidedReplay:
    """What the tasks have found, and written."""

    reports: tuple[ReplayReport, ...]
    tables: tuple[TableFiles, ...]

    @property
    def records(self) -> int:
        """Records that were read."""
        return sum(report.records for report in self.reports)

    @property
    def rows(self) -> dict[str, int]:
        """Rows by table."""
        return sum_counts(report.rows for report in self.reports)

    @property
    def still_dead(self) -> dict[str, int]:
        """Records that can't become rows, by reason."""
        return sum_counts(report.still_dead for report in self.reports)

    @property
    def judged(self) -> Judged:
        """What the rules came to."""
        return merge_judged(report.judged for report in self.reports)


@dataclass(frozen=True, slots=True)
class Replayer:
    """Replays into the tables of a lakehouse."""

    reader: RecordReader
    store: Store
    tables: DeltaTables
    decoding: TaskPlan
    failpoints: Failpoints

    def dry_run(self, asked: ReplayRequest) -> Replayed:
        """What a replay would do; nothing is written.

        Raises:
            TransientError: a batch of the stream is half committed.
        """
        return _result(asked, self._land(asked, 0, Purpose.COUNT))

    def replay(self, asked: ReplayRequest) -> Replayed:
        """Bring the rows back that the tables lack.

        Raises:
            LeaseHeldError: another process changes which rows the tables have.
            LeaseLostError: another process has taken over; nothing was committed.
            TransientError: a batch of the stream is half committed.
            BrokenRuleError: a row breaks a rule that nothing may break; nothing was committed.
        """
        with replay_run(self.store, self.tables, self.failpoints) as run:
            return self._replay(asked, run)

    def _replay(self, asked: ReplayRequest, run: ReplayRun) -> Replayed:
        decided = self._land(asked, run.number, Purpose.WRITE)
        self.failpoints.reach(Failpoint.AFTER_FILES)
        require_no_failures(decided.judged)
        if decided.tables:
            run.settle(_manifest(asked, decided, run.number))
        return msgspec.structs.replace(_result(asked, decided), run=run.number if decided.tables else None)

    def _land(self, asked: ReplayRequest, number: int, purpose: Purpose) -> DecidedReplay:
        source = {asked.selection.source: settled_version(self.store, asked.selection.source)}
        versions = self.present_versions() | source
        plan = ReplayPlan(
            decoding=self.decoding,
            run=number,
            source=asked.selection.source,
            targets=asked.targets,
            versions=versions,
            wanted=WantedRows.MISSING,
            purpose=purpose,
        )
        return self.decide(partial(self.reader.reports, asked.selection), plan)

    def present_versions(self) -> dict[str, int]:
        """The tables that a replay may add to, and their newest versions."""
        others = (SILVER_EVENTS, REPLAYED, QUARANTINE, RELEASED)
        there = [name for name in table_paths(self.store) if game_of(name) or name in others]
        return {name: open_table(self.store.location, name).version() for name in there}

    def decide(self, run: Callable[[ReplayPlan], tuple[ReplayReport, ...]], plan: ReplayPlan) -> DecidedReplay:
        """Have the tasks read records, and write what the plan wants of them.

        Raises:
            IncompatibleSchemaError: the tasks could not agree on a table's columns.
        """
        known = {name: schema for name in plan.versions if (schema := self.tables.schema(name)) is not None}
        columns = TableColumns(known)
        for _ in range(_ATTEMPTS):
            reports = run(replace(plan, decoding=self.decoding.for_tables(columns.schemas)))
            try:
                return DecidedReplay(reports, columns.agree(file for report in reports for file in report.files))
            except IncompatibleSchemaError as error:
                log.warning("running the replay again: %s", error)
                conflict = error
        raise conflict


def _manifest(asked: ReplayRequest, decided: DecidedReplay, number: int) -> ReplayManifest:
    return ReplayManifest(
        number=number,
        source=asked.selection.source,
        written_at=datetime.now(UTC).isoformat(),
        records=decided.records,
        settled=decided.rows.get(MARKED_IN.get(asked.selection.source, ""), 0),
        still_dead=decided.still_dead,
        tables=decided.tables,
    )


def _result(asked: ReplayRequest, decided: DecidedReplay) -> Replayed:
    judged = decided.judged
    return Replayed(
        source=asked.selection.source,
        records=decided.records,
        rows=decided.rows,
        still_dead=decided.still_dead,
        quarantined=judged.quarantined,
        dropped=judged.dropped,
    )
