"""Delta tables for streams: each batch is appended exactly once, even if it is retried."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from gamelake.delta.appends import BatchTransaction, TableHead, schema_of
from gamelake.delta.columns import delta_schema_json, merged
from gamelake.delta.comments import CommentsOf, describe, no_comments
from gamelake.delta.commits import CommitConflictError, commit_with_retry, put_entry
from gamelake.delta.log.checkpoints import (
    checkpoint_from_copy,
    commits_between_checkpoints,
    files_of_log_checkpoint,
    is_log_checkpoint_due,
    newest_transaction,
)
from gamelake.delta.log.codec import TableMetadata, commit_info, now_milliseconds
from gamelake.delta.log.table_features import TableUse
from gamelake.delta.table_files import TableFiles
from gamelake.model.errors import (
    ContractError,
    IncompatibleSchemaError,
    StoreError,
    StoreUnavailableError,
    TableRefusedError,
    TransientError,
)
from gamelake.model.logs import event_logger
from gamelake.objects.store import Location, Store, require_put_if_absent

log = event_logger(__name__)

_APPEND_ATTEMPTS = 100
_LISTINGS = 50
_REQUESTS_A_CHECKPOINT = 8
# Log cleanup may delete entries that this process has not read, but every retention is longer than this.
_STALE_SECONDS = 600
# These errors already state whether the failure concerns one table or the store.
_FAILURES_OF_ONE_TABLE = (
    TableNotFoundError,
    TableRefusedError,
    ContractError,
    IncompatibleSchemaError,
    StoreUnavailableError,
)


# Returns the first batch of a stream that waits for a table; None if no batch waits. Arguments: store, stream, table.
FirstWaiting: TypeAlias = Callable[[Store, str, str], int | None]


def takes_no_stream(store: Store, stream: str, table: str) -> int | None:
    """Refuse batches of streams, because their writer must know which batches wait.

    Raises:
        ValueError: always.
    """
    del store
    raise ValueError(f"{table} would accept a batch of {stream} too early; open the tables with stream_tables()")


class CommitOutcome(StrEnum):
    """The outcome of a commit.

    Attributes:
        COMMITTED: this call has committed it.
        ALREADY_COMMITTED: the table had it before.
    """

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already_committed"


class DeltaTables:
    """The tables of a lakehouse: each is opened once, then followed commit by commit.

    Use the tables in a `with` block, whose end waits for log checkpoints. Several threads may use different tables at
    the same time; each table is for one thread at a time.

    Args:
        location: of the lakehouse.
        comments: returns the comments of a table and its columns by the table's path.
        first_waiting: returns the first waiting batch; `gamelake.ledger.held_tables.stream_tables` passes it. Without
            it, batches of streams are refused.

    Attributes:
        store: the store of the lakehouse.
        on_log_checkpoint_failure: called after a log checkpoint could not be written, on a thread of its own.

    Example:
        >>> from gamelake.delta.data_files import write_rows
        >>> rows = pa.table({"text": ["first", "second"]})
        >>> file = write_rows(Store(location), "silver/notes", rows, {})
        >>> schema = delta_schema_json(rows.schema)
        >>> files = TableFiles(table="silver/notes", partition_by=(), schema=schema, files=(file,))
        >>> with DeltaTables(location) as tables:
        ...     tables.append(files, BatchTransaction("import", 7)), tables.append(files, BatchTransaction("import", 7))
        (<CommitOutcome.COMMITTED: 'committed'>, <CommitOutcome.ALREADY_COMMITTED: 'already_committed'>)
    """

    def __init__(
        self, location: Location, comments: CommentsOf = no_comments, first_waiting: FirstWaiting = takes_no_stream
    ) -> None:
        self._location = location
        self._comments = comments
        self._first_waiting = first_waiting
        self.store = Store(location)
        self._heads: dict[str, TableHead] = {}
        # Tables and streams without a waiting batch at this process's first append. Since then it keeps the order.
        self._in_order: set[tuple[str, str]] = set()
        # One at a time on a local disk, where checkpoints need the processor; several if they wait for a remote store.
        threads = max(1, self.store.at_once // _REQUESTS_A_CHECKPOINT)
        self._checkpoints = ThreadPoolExecutor(threads, thread_name_prefix="delta-checkpoints")
        self._unfinished: set[str] = set()
        # The number of live files by table, from the last log checkpoint of this process.
        self._files: dict[str, int] = {}
        self.on_log_checkpoint_failure: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        """Use the tables until the end of the `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until all log checkpoints that are due are written."""
        self._checkpoints.shutdown(wait=True)

    @property
    def at_once(self) -> int:
        """The number of tables that are worth committing to in parallel."""
        return self.store.at_once

    def schema(self, table: str) -> pa.Schema | None:
        """Return a table's columns in order, in the types of `gamelake.delta.columns`.

        Returns:
            The columns; None if there is no such table yet, or if it can't be opened.

        Raises:
            StoreUnavailableError: the table can't be opened because the store takes no write.
        """
        try:
            with self._refusals_of(table):
                return schema_of(self._opened(table))
        except (TableNotFoundError, TableRefusedError):
            return None

    def schemas(self, tables: Iterable[str]) -> dict[str, pa.Schema]:
        """Return the columns of the tables that exist, by path, as `schema` returns them."""
        return {table: schema for table in tables if (schema := self.schema(table)) is not None}

    def partition_columns(self, table: str) -> tuple[str, ...] | None:
        """Return a table's partition columns in order; None if there is no such table yet, or if it can't be opened.

        Raises:
            StoreUnavailableError: the table can't be opened because the store takes no write.
        """
        try:
            with self._refusals_of(table):
                return tuple(self._opened(table).metadata().partition_columns)
        except (TableNotFoundError, TableRefusedError):
            return None

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """Return the last transaction version of an application; None if the table, or its transaction, is missing.

        Raises:
            TableRefusedError: the table can't be opened, or its log is damaged.
            StoreUnavailableError: the table can't be opened because the store takes no write.
        """
        try:
            with self._refusals_of(table):
                return newest_transaction(self.store, table, self._opened(table), app_id)
        except TableNotFoundError:
            return None

    def _opened(self, table: str) -> DeltaTable:
        return open_table(self._location, table)

    @contextmanager
    def _refusals_of(self, table: str) -> Iterator[None]:
        """Convert any failure in the block to a refusal by the table if the store takes other writes.

        Raises:
            TableRefusedError: the block failed, and the store takes writes.
            StoreUnavailableError: the block failed, and the store takes no write.
            StoreError: the block failed, and the keys may not write to the store.
        """
        try:
            yield
        except _FAILURES_OF_ONE_TABLE:
            raise
        except Exception as error:
            try:
                require_put_if_absent(self.store)
            except (StoreError, StoreUnavailableError) as outage:
                raise outage from error
            raise TableRefusedError(f"{table} can't be used: {_named(error)}") from error

    def knows(self, entry: TableFiles, app_id: str) -> bool:
        """Return True if this process knows that an entry's table has the entry's columns; no request is made."""
        head = self._heads.get(entry.table)
        return head is not None and self._is_current(head, app_id) and head.has_columns(entry)

    def columns_for(self, entry: TableFiles, app_id: str) -> pa.Schema | None:
        """Return the newest columns of a table if an entry adds columns to those that this process knows.

        Only a table with new columns is read: the log entries after the version that this process knows.

        Returns:
            All columns of the table in order, in the types of `gamelake.delta.columns`. None if the table is missing,
            or has all columns of the entry.

        Raises:
            TableRefusedError: the table has a feature that the platform does not write, or its log is damaged.
            StoreUnavailableError: the log can't be read because the store takes no write.
        """
        with self._refusals_of(entry.table):
            head = self._head(entry.table, app_id)
            if head is None or head.has_columns(entry):
                return None
            try:
                head.follow(self.store, entry.table)
            except TableRefusedError:
                self._heads.pop(entry.table, None)
                raise
            return head.schema

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Commit a batch's files to a table; create the table or add columns if needed.

        The call is idempotent: a batch that the table has is not committed again.

        Raises:
            TableRefusedError: the table has a feature that the platform does not write, its log is damaged, other
                writers committed first at every attempt, an earlier batch waits for the table, or another error
                occurred while the store took other writes.
            ContractError: the table is partitioned by other columns.
            IncompatibleSchemaError: another writer has set another type for a column.
            StoreUnavailableError: the store takes no write.
            StoreError: the keys may not write to the store.
        """
        try:
            with self._refusals_of(entry.table):
                return commit_with_retry(entry.table, _APPEND_ATTEMPTS, lambda: self._append_once(entry, transaction))
        except TableRefusedError:
            if self._has(entry.table, transaction):
                return CommitOutcome.ALREADY_COMMITTED
            raise

    def _has(self, table: str, transaction: BatchTransaction) -> bool:
        """Return True if a table that refuses appends already has a batch."""
        # The cached state of the table would let the next attempt pass without a check.
        head = self._heads.pop(table, None)
        try:
            if head is not None and transaction.app_id in head.taken:
                taken = head.taken[transaction.app_id]
            else:
                taken = self.transaction_version(table, transaction.app_id)
        except TableRefusedError:
            return False  # its batch waits then; once the table can be opened, the batch turns out to be committed
        return taken is not None and taken >= transaction.version

    def _append_once(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Try once to append.

        Raises:
            CommitConflictError: another writer has committed the version.
            CommitFailedError: the same, if delta-rs has detected it.
        """
        self._require_order(entry.table, transaction)
        head = self._head(entry.table, transaction.app_id)
        if head is None:
            return self._create(entry, transaction)
        if head.partition_by != entry.partition_by:
            raise ContractError(repartitioned(entry.table, head.partition_by, entry.partition_by))
        taken = head.taken[transaction.app_id]
        if taken is not None and taken >= transaction.version:
            return CommitOutcome.ALREADY_COMMITTED
        if not head.has_columns(entry):
            self.widen(entry)
            head.follow(self.store, entry.table)
        if not head.put(self.store, entry, transaction):
            head.follow(self.store, entry.table)
            raise CommitConflictError
        self._keep_log_short(head, entry.table)
        return CommitOutcome.COMMITTED

    def _require_order(self, table: str, transaction: BatchTransaction) -> None:
        """Check that no earlier batch of a stream waits for a table.

        After a commit of a later batch, its transaction version would make the waiting batch look committed.

        Raises:
            TableRefusedError: an earlier batch waits.
        """
        stream = transaction.stream
        if not stream or (table, stream) in self._in_order:
            return
        first = self._first_waiting(self.store, stream, table)
        if first is not None and first < transaction.version:
            raise TableRefusedError(f"{table} waits for batch {first} of {stream}, which comes first")
        if first is None:
            self._in_order.add((table, stream))

    def _head(self, table: str, app_id: str) -> TableHead | None:
        head = self._heads.get(table)
        if head is None or not self._is_current(head, app_id):
            try:
                head = TableHead.of(self.store, table, self._opened(table), app_id, TableUse.APPEND)
            except TableNotFoundError:
                return None
            self._heads[table] = head
        return head

    @staticmethod
    def _is_current(head: TableHead, app_id: str) -> bool:
        return app_id in head.taken and time.monotonic() - head.seen_at <= _STALE_SECONDS

    def _create(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        head = TableHead.create(self.store, entry, transaction, self._comments(entry.table))
        if head is None:
            raise CommitConflictError
        self._heads[entry.table] = head
        return CommitOutcome.COMMITTED

    def widen(self, entry: TableFiles) -> None:
        """Add the columns of an entry's schema that the table lacks; commit changed comments too.

        Raises:
            IncompatibleSchemaError: a column of the table has another type.
            TransientError: other writers committed first at every attempt.
        """

        def newest() -> DeltaTable:
            return open_table(self._location, entry.table)

        wanted = Schema.from_json(entry.schema)
        commit_with_retry(
            entry.table, _APPEND_ATTEMPTS, lambda: _add_columns(self.store, entry.table, newest(), wanted)
        )
        describe(self.store, entry.table, self._comments(entry.table), newest)

    def _keep_log_short(self, head: TableHead, table: str) -> None:
        """Write a log checkpoint every 50 commits, or more rarely for many files, to limit what readers replay.

        If checkpoints are slower than commits, each table has only one that waits or runs. It is of the newest version
        at the time it runs, and readers replay more commits.
        """
        due = is_log_checkpoint_due(table, head.version, self._files.get(table, 0))
        if due and table not in self._unfinished:
            self._unfinished.add(table)
            self._checkpoints.submit(self._write_log_checkpoint, table, head.version)

    def _write_log_checkpoint(self, table: str, version: int) -> None:
        try:
            files = checkpoint_log(self.store, table, version, self._files.get(table, 0))
            if files is None:
                self.on_log_checkpoint_failure()
            else:
                self._files[table] = files
        finally:
            self._unfinished.discard(table)


def open_table(location: Location, table: str, version: int | None = None) -> DeltaTable:
    """Open a table by its path inside the lakehouse, at a version or at the newest one.

    Raises:
        TableNotFoundError: there is no table.
        TransientError: its log grew at every attempt to list it.

    Example:
        >>> from deltalake import write_deltalake
        >>> write_deltalake(location.child("silver/notes"), pa.table({"text": ["first"]}))
        >>> open_table(location, "silver/notes").version()
        0
    """
    for _ in range(_LISTINGS):
        try:
            return DeltaTable(location.child(table), version, storage_options=dict(location.options))
        except DeltaError as error:
            # While a folder grows, a file system may list a commit without the commit before it.
            if not _is_gap(error):
                raise
    raise TransientError(f"the log of {table} grew at {_LISTINGS} attempts to list it; try again")


def checkpoint_log(store: Store, table: str, version: int, files: int = 0) -> int | None:
    """Write a checkpoint of a table's log.

    A failure is logged and harmless: the commit is valid, and readers replay more entries until the next checkpoint.

    Args:
        store: the lakehouse.
        table: the table's path.
        version: the committed version. The checkpoint is of the newest version.
        files: the number of live files in the former checkpoint, which determines when the next one is due.

    Returns:
        The number of live files in the checkpoint; None if it could not be written.
    """
    try:
        # On a local disk a copy of the log costs more than it saves.
        found = None if store.is_local else checkpoint_from_copy(store, table, version)
        if found is not None:
            return found
        open_table(store.location, table).create_checkpoint()
        return files_of_log_checkpoint(store, table)
    except Exception as error:
        log.warning(
            "log_checkpoint_failed",
            table=table,
            version=version,
            error=error,
            action=f"tries again after {commits_between_checkpoints(files)} commits",
        )
        return None


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _is_gap(error: DeltaError) -> bool:
    """Return True if a listing lacked a commit between two others.

    deltalake 1.6 has one class and no code for all errors of the Delta kernel, so only the text identifies the error.
    Paths follow in the text, so only its beginning is compared.
    """
    return str(error).startswith("Kernel error: Generic delta kernel error: Expected contiguous commit files")


def repartitioned(table: str, have: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    """Return the message for a table with other partition columns than its contract."""
    return (
        f"{table} is partitioned by {', '.join(have)}, but the games contract has {', '.join(wanted)}; a table's "
        "partitioning can't be changed. Revert the contract, or rename the game, which then gets a new table"
    )


def _add_columns(store: Store, table: str, handle: DeltaTable, wanted: Schema) -> None:
    """Commit the columns of a schema that an open table lacks.

    delta-rs is not used: it refuses tables with features such as deletion vectors, which don't concern new columns.

    Raises:
        CommitConflictError: another writer has committed the version.
    """
    have = schema_of(handle)
    target = merged(have, pa.schema(wanted))
    if target is have:
        return
    changed = {
        field.name for field in target if have.get_field_index(field.name) < 0 or have.field(field.name) != field
    }
    known = {field["name"]: field for field in json.loads(handle.schema().to_json())["fields"]}
    columns = json.loads(delta_schema_json(target))
    columns["fields"] = [each if each["name"] in changed else known[each["name"]] for each in columns["fields"]]
    info = commit_info(now_milliseconds(), "ADD COLUMN", {"columns": json.dumps(sorted(changed))}, is_blind_append=True)
    schema, description = json.dumps(columns, ensure_ascii=False), handle.metadata().description
    metadata = TableMetadata.of(handle, schema, description).action()
    if not put_entry(store, table, handle.version() + 1, [info, metadata]):
        raise CommitConflictError
