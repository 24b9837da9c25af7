"""Delta tables as streams write them: each batch is appended once, also when it is retried."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import lru_cache
from types import TracebackType
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from gamelake.model.errors import ContractError, IncompatibleSchemaError, TableRefusedError, TransientError
from gamelake.model.logs import event_logger
from gamelake.storage.appends import BatchTransaction, TableHead, schema_of
from gamelake.storage.columns import merged
from gamelake.storage.comments import Comments, CommentsOf, commented, no_comments
from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.delta_log import (
    Action,
    TableMetadata,
    commit_info,
    encode_entry,
    entry_path,
    now_milliseconds,
)
from gamelake.storage.log_checkpoints import (
    checkpoint_from_copy,
    commits_between_checkpoints,
    files_of_log_checkpoint,
    is_log_checkpoint_due,
)
from gamelake.storage.manifests import TableFiles
from gamelake.storage.readable_schemas import readable_schema, unreadable_schema
from gamelake.storage.store import Location, Store
from gamelake.storage.table_features import TableUse

log = event_logger(__name__)

_DESCRIBE_ATTEMPTS = 20
_APPEND_ATTEMPTS = 100
_LISTINGS = 50
_REQUESTS_A_CHECKPOINT = 8
# Log cleanup may delete entries that this process has not read; no retention is as short as this.
_STALE_SECONDS = 600


def describe(store: Store, table: str, comments: Comments, newest: Callable[[], DeltaTable]) -> bool:
    """Commit a table's comments if they have changed; gives whether they have.

    Args:
        store: the lakehouse.
        table: its path.
        comments: of the table and its columns.
        newest: opens the table at its newest version, which other writers may have committed meanwhile.

    Raises:
        TransientError: other writers committed first at every attempt.
    """

    def attempt() -> bool:
        handle = newest()
        have, metadata = handle.schema().to_json(), handle.metadata()
        wanted = commented(have, comments)
        description = comments.description or metadata.description or ""
        if json.loads(wanted) == json.loads(have) and description == (metadata.description or ""):
            return False
        entry = encode_entry(_actions(handle, wanted, description))
        if not store.put_new(entry_path(table, handle.version() + 1), entry):
            raise CommitConflictError
        return True

    return commit_with_retry(table, _DESCRIBE_ATTEMPTS, attempt)


def _actions(handle: DeltaTable, schema: str, description: str) -> list[Action]:
    info = commit_info(now_milliseconds(), "CHANGE COLUMN", {"column": "comments"}, is_blind_append=True)
    return [info, _metadata_of(handle, schema, description)]


def _metadata_of(handle: DeltaTable, schema: str, description: str | None) -> Action:
    """The metadata action of an open table with another schema, as JSON, and another description."""
    metadata = handle.metadata()
    return TableMetadata(
        table_id=str(metadata.id),
        name=metadata.name,
        description=description,
        schema=schema,
        partition_by=metadata.partition_columns,
        properties=metadata.configuration,
        created=metadata.created_time,
    ).action()


class CommitOutcome(StrEnum):
    """Whether a commit was made, or had been made before."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already_committed"


class DeltaTables:
    """The tables of a lakehouse: each is opened once, then followed commit by commit.

    Attributes:
        on_log_checkpoint_failure: called after a log checkpoint could not be written, on a thread of its own.
    """

    def __init__(self, location: Location, comments: CommentsOf = no_comments) -> None:
        self._location = location
        self._comments = comments
        self._store = Store(location)
        self._heads: dict[str, TableHead] = {}
        # One at a time where they need the processor, several where they wait for the store.
        threads = max(1, self._store.at_once // _REQUESTS_A_CHECKPOINT)
        self._checkpoints = ThreadPoolExecutor(threads, thread_name_prefix="delta-checkpoints")
        self._unfinished: set[str] = set()
        # Live files by the last log checkpoint of this process.
        self._files: dict[str, int] = {}
        self.on_log_checkpoint_failure: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        """Use the tables until the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until the log checkpoints that are due are written."""
        self._checkpoints.shutdown(wait=True)

    @property
    def at_once(self) -> int:
        """How many tables are worth committing to at once."""
        return self._store.at_once

    def schema(self, table: str) -> pa.Schema | None:
        """The table's columns, None if there is no such table yet, or it can't be opened."""
        try:
            return schema_of(self._opened(table))
        except (TableNotFoundError, TableRefusedError):
            return None

    def partition_columns(self, table: str) -> tuple[str, ...] | None:
        """The partition columns, None if there is no such table yet, or it can't be opened."""
        try:
            return tuple(self._opened(table).metadata().partition_columns)
        except (TableNotFoundError, TableRefusedError):
            return None

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """The last transaction version of an application, None if the table has none."""
        try:
            return self._opened(table).transaction_version(app_id)
        except TableNotFoundError:
            return None

    def _opened(self, table: str) -> DeltaTable:
        """An open table.

        Raises:
            TableNotFoundError: there is no table.
            TableRefusedError: delta-rs can't open it, such as one of a newer protocol for readers.
        """
        try:
            return open_table(self._location, table)
        except TableNotFoundError:
            raise
        except DeltaError as error:
            raise TableRefusedError(f"{table} can't be opened: {str(error).splitlines()[0]}") from error

    def knows(self, entry: TableFiles, app_id: str) -> bool:
        """Whether this process knows an entry's table, and that it has the entry's columns: no request is needed."""
        head = self._heads.get(entry.table)
        return head is not None and self._is_current(head, app_id) and head.has_columns(entry)

    def columns_for(self, entry: TableFiles, app_id: str) -> pa.Schema | None:
        """The newest columns of a table, if an entry adds some to those that this process knows; else None.

        Only a table that gets new columns is read: its log from the version on that is known.
        """
        head = self._head(entry.table, app_id)
        if head is None:
            return None
        if head.has_columns(entry):
            return None
        try:
            head.follow(self._store, entry.table)
        except TableRefusedError:
            self._heads.pop(entry.table, None)
            raise
        return head.schema

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Commit a batch's files to a table, which is created or gets new columns where needed; idempotent.

        Raises:
            CommitFailedError: other writers committed first at every attempt.
            TableRefusedError: the table has a feature that the platform does not write.
            ContractError: the table is partitioned by other columns.
            IncompatibleSchemaError: another writer has given a column another type.
        """
        failure = CommitFailedError(
            f"{entry.table}: other writers committed first at each of {_APPEND_ATTEMPTS} attempts"
        )
        try:
            return commit_with_retry(
                entry.table, _APPEND_ATTEMPTS, lambda: self._append_once(entry, transaction), failure
            )
        except TableRefusedError:
            if self._has(entry.table, transaction):
                return CommitOutcome.ALREADY_COMMITTED
            raise

    def _has(self, table: str, transaction: BatchTransaction) -> bool:
        """Whether a table that refuses appends has a batch."""
        # What is known of the table would let the next attempt pass without a check.
        head = self._heads.pop(table, None)
        try:
            if head is not None and transaction.app_id in head.taken:
                taken = head.taken[transaction.app_id]
            else:
                taken = self.transaction_version(table, transaction.app_id)
        except TableRefusedError:
            return False  # then its batch waits, and is found to be committed once the table can be opened
        return taken is not None and taken >= transaction.version

    def _append_once(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """One attempt, which raises CommitConflictError, or delta-rs CommitFailedError, after a conflict."""
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
            head.follow(self._store, entry.table)
        if not head.put(self._store, entry, transaction):
            head.follow(self._store, entry.table)
            raise CommitConflictError
        self._keep_log_short(head, entry.table)
        return CommitOutcome.COMMITTED

    def _head(self, table: str, app_id: str) -> TableHead | None:
        head = self._heads.get(table)
        if head is None or not self._is_current(head, app_id):
            try:
                head = TableHead.of(self._opened(table), app_id, TableUse.APPEND)
            except TableNotFoundError:
                return None
            self._heads[table] = head
        return head

    @staticmethod
    def _is_current(head: TableHead, app_id: str) -> bool:
        return app_id in head.taken and time.monotonic() - head.seen_at <= _STALE_SECONDS

    def _create(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        head = TableHead.create(self._store, entry, transaction, self._comments(entry.table))
        if head is None:
            raise CommitConflictError
        self._heads[entry.table] = head
        return CommitOutcome.COMMITTED

    def widen(self, entry: TableFiles) -> None:
        """Add the columns to a table that the schema of an entry has and the table has not."""

        def newest() -> DeltaTable:
            return open_table(self._location, entry.table)

        wanted = Schema.from_json(readable_schema(entry.schema))
        commit_with_retry(
            entry.table, _APPEND_ATTEMPTS, lambda: _add_columns(self._store, entry.table, newest(), wanted)
        )
        describe(self._store, entry.table, self._comments(entry.table), newest)

    def _keep_log_short(self, head: TableHead, table: str) -> None:
        """Write a log checkpoint every 50 commits, for many files more rarely: readers replay no more than that.

        Where checkpoints are slower than commits, each table has one that waits or is written, which is of the version
        that is the newest when its turn comes, and readers replay more.
        """
        due = is_log_checkpoint_due(table, head.version, self._files.get(table, 0))
        if due and table not in self._unfinished:
            self._unfinished.add(table)
            self._checkpoints.submit(self._write_log_checkpoint, table, head.version)

    def _write_log_checkpoint(self, table: str, version: int) -> None:
        try:
            files = checkpoint_log(self._store, table, version, self._files.get(table, 0))
            if files is None:
                self.on_log_checkpoint_failure()
            else:
                self._files[table] = files
        finally:
            self._unfinished.discard(table)


def open_table(location: Location, table: str, version: int | None = None) -> DeltaTable:
    """Open a table by its path inside the lakehouse, at a version or at its newest.

    Raises:
        TableNotFoundError: there is no table.
        TransientError: its log grew at every attempt to list it.
    """
    for _ in range(_LISTINGS):
        try:
            return DeltaTable(location.child(table), version, storage_options=dict(location.options))
        except DeltaError as error:
            # A file system may list a commit of a growing folder without the commit before it.
            if not _is_gap(error):
                raise
    raise TransientError(f"the log of {table} grew at {_LISTINGS} attempts to list it; try again")


def checkpoint_log(store: Store, table: str, version: int, files: int = 0) -> int | None:
    """Write a checkpoint of a table's log; gives how many live files it names, None if it could not be written.

    A failure is logged and harms nothing: the commit counts, and readers replay more entries until the next checkpoint.

    Args:
        store: the lakehouse.
        table: its path.
        version: the one that was committed; the checkpoint is of the newest.
        files: live files that the checkpoint before it named, by which the next one is due.
    """
    try:
        # A copy of a local disk's log costs more than it saves.
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


def _is_gap(error: DeltaError) -> bool:
    """Whether a listing lacked a commit between two others.

    By its text, which is all that deltalake 1.6 has of it: one class and no code for every error of the Delta kernel.
    The text goes on with paths, so no shorter part of it will do.
    """
    return str(error).startswith("Kernel error: Generic delta kernel error: Expected contiguous commit files")


def repartitioned(table: str, have: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    """The message for a table whose contract asks for other partition columns than it has."""
    return (
        f"{table} is partitioned by {', '.join(have)}, and the games contract says {', '.join(wanted)}; a table's "
        "partitioning can't be changed. Revert the contract, or give the game another name and so a new table"
    )


# Asked for each table of each batch, and by each task for each message type.
@lru_cache(maxsize=1024)
def delta_schema_json(schema: pa.Schema) -> str:
    """A schema as the JSON of a Delta log.

    Raises:
        IncompatibleSchemaError: delta-rs writes the JSON, but can't read it again, and so no table with it.
    """
    text = Schema.from_arrow(schema).to_json()
    if (problem := unreadable_schema(text)) is not None:
        raise IncompatibleSchemaError(f"no table can have these columns: {problem}")
    return text


def _add_columns(store: Store, table: str, handle: DeltaTable, wanted: Schema) -> None:
    """Commit the columns that a schema has and an open table has not.

    delta-rs is not used: it refuses tables with features such as deletion vectors, which ask nothing of new columns.

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
    entry = encode_entry(
        [info, _metadata_of(handle, json.dumps(columns, ensure_ascii=False), handle.metadata().description)]
    )
    if not store.put_new(entry_path(table, handle.version() + 1), entry):
        raise CommitConflictError
