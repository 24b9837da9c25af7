"""A KPI table as rows by day: read for some days, and replaced for some days in one commit.

Source: Delta Transaction Log Protocol, heading "Actions".
"""

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.serving.kpis.definitions import MEANINGS, KpiTable
from gamelake.serving.kpis.generations import KpiTableError
from gamelake.storage.appends import BatchTransaction, schema_of
from gamelake.storage.comments import Comments
from gamelake.storage.commits import CommitConflictError
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import (
    ERASURE_NOTE,
    FileEntry,
    changes_rows,
    commit_info_of,
    live_files,
    preceding_entries,
)
from gamelake.storage.log_checkpoints import is_log_checkpoint_due
from gamelake.storage.manifests import TableFiles
from gamelake.storage.open_tables import OpenTables
from gamelake.storage.rewrites import Replacement
from gamelake.storage.store import Store
from gamelake.storage.tables import delta_schema_json, open_table

_TABLES = {
    "kpi_hourly": "Events and bookings by hour, game, platform and app version; late events correct it for a time.",
    "kpi_late": "Events by the hour in which they happened: those that arrived, were counted, and came too late.",
    "kpi_players": "The first day of each player of each game; of large games a sample of the players.",
    "kpi_player_days": "Who played on which day; of large games a sample of the players.",
    "kpi_sessions": "Sessions by day; of games with many a sample. One that crosses midnight is one on each day.",
    "kpi_daily": "Each day of each game: events, bookings, players, payers and sessions.",
    "kpi_active_players": "Distinct players of each day, and of 7 and 30 days that end with it.",
    "kpi_retention": "New players by their first day, and how many of them came back 1, 7 and 30 days later.",
}


def kpi_comments(table: KpiTable) -> Comments:
    """A KPI table's description and its columns' meanings."""
    return Comments(_TABLES[table.name], {name: MEANINGS[name] for name in table.schema.names})


WRITER_NOTE = "gamelake.kpis"
# A day's file lives until the next batch; a reader that has found it is done with it by then.
_GRACE_SECONDS = 900.0
_PROPERTIES = {"delta.logRetentionDuration": "interval 1 days"}


@dataclass(slots=True)
class DayTable:
    """One KPI table of one generation of the query.

    `app_id` names the generation in the table's log; `former` are those before it, whose rows no longer count.
    """

    store: Store
    definition: KpiTable
    app_id: str
    former: Collection[str]
    _handle: DeltaTable | None = None
    _is_void: bool = False
    _opened: OpenTables = field(init=False)
    _superseded: deque[tuple[float, str]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        """It stays open from batch to batch."""
        self._opened = OpenTables(self.store, most=1)

    @property
    def path(self) -> str:
        """Where it stands in the lakehouse."""
        return self.definition.path

    def open(self) -> None:
        """See the newest version.

        Raises:
            KpiTableError: another writer has written rows into it.
        """
        try:
            self._handle = self._opened.newest(self.path)
        except TableNotFoundError:
            self._handle = None
            return
        self._is_void = self._writer(self._handle.version()) != self.app_id

    def days(self) -> set[date]:
        """The days that have rows."""
        return set(self.files().values())

    def rows(self, days: Collection[date] | None = None) -> pa.Table:
        """The rows of some days, or all of them."""
        return self._read([file for file in self._files() if days is None or self._day(file) in days])

    def files(self) -> dict[str, date]:
        """The day of each file, by the file's path; a path never has other rows."""
        return {file.relative_path: day for file in self._files() if (day := self._day(file)) is not None}

    def rows_of(self, paths: Collection[str]) -> pa.Table:
        """The rows of some files, with the columns of the table's definition, in no order."""
        return self._read([file for file in self._files() if file.relative_path in paths])

    def _read(self, files: list[FileEntry]) -> pa.Table:
        if self._handle is None:
            return self.definition.schema.empty_table()
        rows = dataset(self.store.location, self.path, schema_of(self._handle), files).to_table()
        return rows.select(self.definition.schema.names).cast(self.definition.schema)

    def replace(self, days: Collection[date], rows: pa.Table, batch: int) -> None:
        """Make the rows of some days those; `rows` has no others.

        Raises:
            CommitConflictError: another writer has committed since the table was opened.
        """
        removed = [file for file in self._files() if self._day(file) in days]
        if self._is_void and self._handle is not None:
            removed = live_files(self._handle)
        files = [self._written(rows, day) for day in _days_of(rows, self.definition.day)]
        if not removed and not files:
            return
        self._commit(files, removed, batch)
        now = time.monotonic()
        self._superseded.extend((now, f"{self.path}/{file.relative_path}") for file in removed)
        self._clean_up(now)

    def _files(self) -> list[FileEntry]:
        return [] if self._handle is None or self._is_void else live_files(self._handle)

    def _day(self, file: FileEntry) -> date | None:
        value = file.partition[self.definition.day]
        return None if value is None else date.fromisoformat(value)

    def _written(self, rows: pa.Table, day: date) -> DataFile:
        column = self.definition.day
        of_day = rows.filter(pc.field(column) == pa.scalar(day)).drop_columns([column])
        content, statistics = encode_parquet(of_day.combine_chunks(), frozenset({"gamer_id", "session_id"}))
        path = new_file_name(f"{column}={day}")
        self.store.put(f"{self.path}/{path}", content.to_pybytes())
        return DataFile(
            path=path, size=content.size, rows=len(of_day), partition={column: str(day)}, statistics=statistics
        )

    def _commit(self, files: list[DataFile], removed: list[FileEntry], batch: int) -> None:
        definition = self.definition
        replacement = Replacement(
            entry=TableFiles(
                table=self.path,
                partition_by=(definition.day,),
                schema=delta_schema_json(definition.schema),
                files=tuple(files),
            ),
            removed=removed,
            transaction=BatchTransaction(self.app_id, batch),
            table_id="" if self._handle is None else str(self._handle.metadata().id),
            properties=_PROPERTIES if self._handle is None or self._is_void else None,
            notes={WRITER_NOTE: self.app_id},
            comments=kpi_comments(definition),
        )
        version = 0 if self._handle is None else self._handle.version() + 1
        if not replacement.commit(self.store, version):
            raise CommitConflictError
        self._is_void = False
        if is_log_checkpoint_due(self.path, version):
            open_table(self.store.location, self.path).cleanup_metadata()

    def _writer(self, version: int) -> str:
        """The generation that wrote the newest rows; an erasure's commit and a compaction's count for none.

        Raises:
            KpiTableError: another writer has written rows.
        """
        for each, actions in preceding_entries(self.store, self.path, version):
            info = commit_info_of(actions)
            if changes_rows(actions) and ERASURE_NOTE not in info:
                if info.get(WRITER_NOTE) in (self.app_id, *self.former):
                    return str(info[WRITER_NOTE])
                raise KpiTableError(_foreign(self.path, each, info.get("operation", "a commit")))
        return self.app_id

    def _clean_up(self, now: float) -> None:
        while self._superseded and now - self._superseded[0][0] > _GRACE_SECONDS:
            self.store.delete(self._superseded.popleft()[1])


def _days_of(rows: pa.Table, column: str) -> list[date]:
    return sorted(rows.column(column).unique().to_pylist())


def _foreign(path: str, version: int, operation: str) -> str:
    return (
        f"version {version} of {path} ({operation}) is not the KPI query's: a KPI table has one writer. Nothing was "
        "written. Stop the other writer, then start once with --rebuild, which makes all KPI tables anew from silver"
    )
