"""The driver of a replay: tasks find and write rows that the tables lack, and one commit per table adds them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import msgspec

from gamelake.contract.games import load_games
from gamelake.delta.appends import columns_of
from gamelake.delta.columns import conflicts
from gamelake.delta.listing import games_of, table_paths
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.layers.comments import EventComments
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import EventsFile, Judged
from gamelake.ledger.replay_manifests import ReplayManifest
from gamelake.ledger.replay_notices import ReplayNotices
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import QUARANTINE, RELEASED, REPLAYED, SILVER_EVENTS, game_of, game_table
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.quality.judging import merge_judged, require_no_failures
from gamelake.recovery.replay.execution import LocalReader, ReaderBySize, Selection, SparkReader
from gamelake.recovery.replay.identities import IdentityPlan, ReplayWindows
from gamelake.recovery.replay.late_batches import LateBatches
from gamelake.recovery.replay.marks import MARKED_IN
from gamelake.recovery.replay.runs import replay_run
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.task import Purpose, ReplayPlan, ReplayReport, WantedRows
from gamelake.session import own_session
from gamelake.streaming.driver.decision import sum_counts
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.plan import TaskPlan, WrittenFile, clock_now
from gamelake.streaming.rules import RulesLoader

log = event_logger(__name__)

_ATTEMPTS = 5


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay, or of its dry run.

    Attributes:
        source: the table of the records.
        records: number of records that were read.
        rows: number of added rows by table.
        still_dead: number of records that remain dead letters, by reason.
        quarantined: number of rows that broke a rule with the action `quarantine`, by rule. If the source is the
            quarantine, these rows stay there.
        dropped: number of rows that a rule dropped, by rule.
        erased: number of rows that were not written because their players' erasure is recorded, by table.
        run: number of the run; None if nothing was written.
    """

    source: str
    records: int
    rows: dict[str, int]
    still_dead: dict[str, int]
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    erased: dict[str, int] = {}
    run: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A request to replay.

    Attributes:
        selection: the records to read again.
        targets: the tables that may get rows; empty for all.
    """

    selection: Selection
    targets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DecidedReplay:
    """The results of a replay's tasks.

    Attributes:
        result: their sums.
        judged: the sum of the rules' results.
        tables: the files that were written, by table.
        versions: the versions of the tables that the rows were compared with.
        events: the files with the identities of the added rows.
    """

    result: Replayed
    judged: Judged
    tables: tuple[TableFiles, ...]
    versions: Mapping[str, int]
    events: tuple[EventsFile, ...]


@dataclass(frozen=True, slots=True)
class Replayer:
    """Replays into the tables of a lakehouse.

    Attributes:
        reader: reads the records and runs the tasks; files of a failed attempt belong to no table.
        tables: commits to the tables.
        decoding: the decoding part of the tasks' plan.
        failpoints: where tests kill the process.
        windows: the times for which streams remember events.
    """

    reader: ReaderBySize | LocalReader | SparkReader
    tables: DeltaTables
    decoding: TaskPlan
    failpoints: Failpoints
    windows: ReplayWindows = field(default_factory=ReplayWindows)

    def dry_run(self, request: ReplayRequest) -> Replayed:
        """Decode and count the rows; write nothing.

        Raises:
            TransientError: a batch of the stream is partly committed.
        """
        return self._land(request, 0, Purpose.COUNT).result

    def replay(self, request: ReplayRequest) -> Replayed:
        """Write the rows that the tables lack.

        Raises:
            LeaseHeldError: another process holds the revision lease.
            LeaseLostError: another process has taken over; nothing was committed.
            TransientError: a batch of the stream is partly committed.
            BrokenRuleError: a row breaks a rule with the action `fail`; nothing was committed.
        """
        with replay_run(self.tables, self.failpoints) as run:
            decided = self._compatible(request, run.number)
            self.failpoints.reach(Failpoint.AFTER_FILES)
            require_no_failures(decided.judged)
            result = decided.result
            if not decided.tables:
                return result
            manifest = ReplayManifest(
                number=run.number,
                source=result.source,
                written_at=datetime.now(UTC).isoformat(),
                records=result.records,
                settled=result.rows.get(MARKED_IN.get(result.source, ""), 0),
                still_dead=result.still_dead,
                tables=decided.tables,
                versions=decided.versions,
                events=decided.events,
                remembered=self.windows.remembered(decided.events),
            )
            rows = {entry.table: entry.rows for entry in run.settle(manifest).tables}
            return msgspec.structs.replace(result, run=run.number, rows=rows)

    def _compatible(self, request: ReplayRequest, number: int) -> DecidedReplay:
        """Decide again while streams add columns whose types conflict with the rows; give up after some attempts."""
        application = ReplayManifest(number=number).transaction.app_id
        for _ in range(_ATTEMPTS):
            decided = self._land(request, number, Purpose.WRITE)
            newest = ((entry, self.tables.columns_for(entry, application)) for entry in decided.tables)
            clashes = [entry.table for entry, have in newest if have is not None and conflicts(have, columns_of(entry))]
            if not clashes:
                return decided
            log.warning("replay_decided_again", reason="columns of other types", tables=clashes)
        raise IncompatibleSchemaError(
            f"in each of {_ATTEMPTS} attempts a stream added columns of other types to {clashes[0]}; try again"
        )

    def _land(self, request: ReplayRequest, number: int, purpose: Purpose) -> DecidedReplay:
        source, store = request.selection.source, self.tables.store
        handle = open_table(store.location, source)
        # Every batch that this version has is in the other tables too then.
        LateBatches(self.tables).wait()
        version = handle.version()
        seed = ReplayNotices(store).seed() if purpose is Purpose.WRITE else ""
        plan = ReplayPlan(
            decoding=self.decoding,
            run=number,
            source=source,
            targets=request.targets,
            versions=self.present_versions() | {source: version},
            wanted=WantedRows.MISSING,
            purpose=purpose,
            identities=IdentityPlan.of(seed, self.windows, store.location, source, version) if seed else None,
        )
        return self.decide(partial(self.reader.reports, request.selection), plan)

    def present_versions(self) -> dict[str, int]:
        """Return the newest versions of the existing tables that a replay may append to."""
        others = (SILVER_EVENTS, REPLAYED, QUARANTINE, RELEASED)
        there = [name for name in table_paths(self.tables.store) if game_of(name) or name in others]
        return {name: open_table(self.tables.store.location, name).version() for name in there}

    def decide(self, run: Callable[[ReplayPlan], tuple[ReplayReport, ...]], plan: ReplayPlan) -> DecidedReplay:
        """Run the tasks, and run them again if they disagree on a table's columns.

        Args:
            run: runs a plan, and returns its reports.
            plan: the plan, without the erased players and the tables' columns, which are added.
        """
        columns = TableColumns(self.tables.schemas(plan.versions))
        decoding = replace(self.decoding, clock=clock_now())
        plan = replace(plan, erased=ErasureRecords(self.tables.store).erased_pseudonyms())

        def attempt() -> tuple[tuple[ReplayReport, ...], list[WrittenFile]]:
            reports = run(replace(plan, decoding=decoding.for_tables(columns.schemas)))
            return reports, [file for report in reports for file in report.files]

        reports, tables = columns.agree_on(attempt)
        judged = merge_judged(report.judged for report in reports)
        result = Replayed(
            source=plan.source,
            records=sum(report.records for report in reports),
            rows=sum_counts(report.rows for report in reports),
            still_dead=sum_counts(report.still_dead for report in reports),
            quarantined=judged.quarantined,
            dropped=judged.dropped,
            erased=sum_counts(report.erased for report in reports),
        )
        events = tuple(report.events for report in reports if report.events is not None)
        return DecidedReplay(result, judged, tables, plan.versions, events)


@contextmanager
def replayer(name: str, settings: ReplaySettings) -> Iterator[Replayer]:
    """Yield a replayer; its tables are closed at the end of the block.

    Args:
        name: name of the Spark application, which is started only for large selections.
        settings: the settings of the replay.

    Raises:
        ContractError: the games contract is invalid, or a rule can't be evaluated.
    """
    location = settings.tables.lakehouse.location
    sessions = partial(own_session, name, location, settings.tables.spark_jars)
    with opened(settings, ReaderBySize(location, sessions)) as replays:
        yield replays


@contextmanager
def opened(settings: ReplaySettings, reader: ReaderBySize | LocalReader | SparkReader) -> Iterator[Replayer]:
    """Yield a replayer with a given reader, as `replayer` does; replayed rows are evaluated like new ones."""
    games_file, store = settings.tables.games_file, Store(settings.tables.lakehouse.location)
    contract = load_games(games_file)
    with stream_tables(store.location, EventComments(contract, store)) as tables:
        loader = RulesLoader(
            settings.rules, games_file, contract, store, lambda: tables.schemas(map(game_table, games_of(store)))
        )
        decoding = replace(settings.decoding(), rules=loader.watch().now())
        yield Replayer(reader, tables, decoding, Failpoints(settings.tables.kill), settings.windows)
