"""Statistics of the newest version of each table, from its log, followed commit by commit.

A table is opened once, at the cost of its whole log; after that a refresh takes two small reads, and one more for each
commit since the last refresh.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Actions".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from gamelake.delta.log.codec import Action, commit_info_of, decode_entry, entry_path, row_count
from gamelake.delta.tables import open_table
from gamelake.model.logs import event_logger
from gamelake.objects.store import Location, Store
from services.catalog.errors import TableError, UnreadableLogError
from services.catalog.tables import CatalogTable

SMALL_FILE_BYTES = 16 * 1024 * 1024
log = event_logger(__name__)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live file: its rows according to the log, its size in bytes."""

    rows: int
    size: int


@dataclass(slots=True)
class TableStatistics:
    """Statistics of a table's newest version; `committed_at` in seconds since 1970."""

    table_id: str
    version: int
    committed_at: float
    entry_digest: bytes
    rows: int = 0
    size: int = 0
    small_files: int = 0
    _files: dict[bytes, LiveFile] = field(default_factory=dict, repr=False)

    @property
    def files(self) -> int:
        """Number of files of the version."""
        return len(self._files)

    def add(self, path: str, file: LiveFile) -> None:
        """Add a live file; it replaces one of the same path."""
        self.remove(path)
        self._files[_key(path)] = file
        self._count(file, 1)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if (file := self._files.pop(_key(path), None)) is not None:
            self._count(file, -1)

    def _count(self, file: LiveFile, sign: int) -> None:
        self.rows += sign * file.rows
        self.size += sign * file.size
        self.small_files += sign * (file.size < SMALL_FILE_BYTES)


def _key(path: str) -> bytes:
    """A 16-byte hash of a file's unescaped path, to save memory: a table may have a million files."""
    return sha256(unquote(path).encode()).digest()[:16]


class LogReader:
    """Opens tables, and updates their statistics."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._store = Store(location)

    def open(self, table: CatalogTable) -> TableStatistics:
        """Read the statistics of a table from its checkpoint and the commits after it.

        Raises:
            UnreadableLogError: the log is damaged or missing.
        """
        try:
            handle = open_table(self._location, str(table))
            version = handle.version()
            adds = handle.get_add_actions(flatten=True)
            columns = [adds.column(name).to_pylist() for name in ("path", "num_records", "size_bytes")]
            last_modified = max(adds.column("modification_time").to_pylist(), default=0)
            table_id = str(handle.metadata().id)
        except DeltaError as error:
            raise UnreadableLogError(f"{table} has a log that can't be read: {error}") from error
        entry = self._store.get(entry_path(str(table), version))
        figures = TableStatistics(table_id, version, last_modified / 1000, sha256(entry or b"").digest())
        for path, rows, size in zip(*columns, strict=True):
            figures.add(path, LiveFile(rows or 0, size))
        if entry is not None:
            try:
                figures.committed_at = _committed_at(decode_entry(entry), figures.committed_at)
            except ValueError as error:
                raise UnreadableLogError(f"{table} has a damaged entry {version}: {error}") from error
        return figures

    def follow(self, table: CatalogTable, figures: TableStatistics) -> bool:
        """Apply the commits made since; False if the log is not the one that the statistics are of.

        Raises:
            UnreadableLogError: an entry is damaged.
        """
        head = self._store.get(entry_path(str(table), figures.version))
        if head is None or sha256(head).digest() != figures.entry_digest:
            # Deleted by log cleanup, or of another table.
            return False
        while (entry := self._store.get(entry_path(str(table), figures.version + 1))) is not None:
            try:
                _take(figures, decode_entry(entry))
            except (ValueError, KeyError) as error:
                raise UnreadableLogError(f"{table} has a damaged entry {figures.version + 1}: {error}") from error
            figures.version += 1
            figures.entry_digest = sha256(entry).digest()
        return True


def _take(figures: TableStatistics, actions: list[Action]) -> None:
    # A commit that replaces a file by one of the same path lists both in any order.
    for action in actions:
        if "remove" in action:
            figures.remove(action["remove"]["path"])
    for action in actions:
        if "add" in action:
            rows = row_count(action["add"])
            figures.add(action["add"]["path"], LiveFile(rows, int(action["add"]["size"])))
        if "metaData" in action:
            figures.table_id = action["metaData"]["id"]
    figures.committed_at = _committed_at(actions, figures.committed_at)


def _committed_at(actions: list[Action], otherwise: float) -> float:
    """The timestamp in an entry's `commitInfo`, which is optional."""
    stated = commit_info_of(actions).get("timestamp")
    return otherwise if stated is None else stated / 1000


class StatisticsTracker:
    """Keeps the statistics of all tables up to date."""

    def __init__(self, reader: LogReader, on_replaced: Callable[[CatalogTable], None]) -> None:
        self._reader = reader
        self._on_replaced = on_replaced
        self._figures: dict[CatalogTable, TableStatistics] = {}

    @property
    def figures(self) -> Mapping[CatalogTable, TableStatistics]:
        """The last statistics of each table."""
        return self._figures

    def measure(self, tables: frozenset[CatalogTable]) -> list[TableError]:
        """Update the statistics of these tables, and drop those of others.

        Returns:
            Errors of single tables; these keep their last statistics.
        """
        for gone in self._figures.keys() - tables:
            del self._figures[gone]
        errors = []
        for table in sorted(tables):
            try:
                self._measure(table)
            except TableError as error:
                log.warning("table_not_measured", table=table, error=error)
                errors.append(error)
        return errors

    def _measure(self, table: CatalogTable) -> None:
        figures = self._figures.get(table)
        if figures is not None and self._reader.follow(table, figures):
            return
        opened = self._reader.open(table)
        if figures is not None and opened.table_id != figures.table_id:
            log.info("table_replaced", table=table, reason="it was dropped and created again")
            self._on_replaced(table)
        self._figures[table] = opened
