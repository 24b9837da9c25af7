"""Tables that one program writes: it replaces files by others, one commit at a time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import BatchTransaction, table_actions
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.comments import NO_COMMENTS, Comments
from gamelake.delta.commits import put_entry
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.log.checkpoints import is_log_checkpoint_due
from gamelake.delta.log.codec import (
    Action,
    FileEntry,
    add_action,
    commit_info,
    live_files,
    now_milliseconds,
    remove_action,
    transaction_action,
)
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import checkpoint_log, open_table
from gamelake.objects.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The changes of a commit.

    Attributes:
        files: the files that the commit adds.
        removed: the files that they replace.
        transaction: the Delta transaction of the commit.
        notes: additional keys of the commit's commitInfo.
        sets_columns: True if the commit also sets an existing table's columns, properties and comments to those of
            `OwnedTable`.
    """

    files: Sequence[DataFile]
    removed: Sequence[FileEntry]
    transaction: BatchTransaction
    notes: Mapping[str, str] = field(default_factory=dict)
    sets_columns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedTable:
    """A table that one program writes.

    The order is: `open`, then `files` and any number of `write`, which several threads may call, then `commit` with the
    same handle. If `commit` returns False, begin again with `open`. Files that no commit names are left to vacuum.

    Attributes:
        store: the lakehouse.
        path: the table's path.
        schema: all columns, in Delta types (`gamelake.delta.columns`).
        partition_by: the partition columns, in order.
        properties: of the table, in addition to the platform's own.
        comments: of the table and its columns.
        unique: columns whose values rarely repeat; see `gamelake.delta.data_files.encode_parquet`.
    """

    store: Store
    path: str
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = NO_COMMENTS
    unique: Collection[str] = frozenset()

    def open(self) -> DeltaTable | None:
        """Open the newest version; return None if there is no table yet.

        Raises:
            TransientError: the table's log grew at every attempt to list it.
        """
        try:
            return open_table(self.store.location, self.path)
        except TableNotFoundError:
            return None

    def files(self, handle: DeltaTable | None, wanted: Callable[[FileEntry], bool]) -> list[FileEntry]:
        """List the files of an open version that meet a condition; none if the handle is None.

        Raises:
            StoreError: see `gamelake.delta.log.codec.live_files`.
        """
        return [] if handle is None else [file for file in live_files(handle) if wanted(file)]

    def write(self, rows: pa.Table, partition: Mapping[str, str | None]) -> DataFile:
        """Write rows as a file of a partition; nothing is committed.

        Args:
            rows: the table's columns without its partition columns, in Delta types; rows in any order.
            partition: the partition values as strings, by column, in the table's order.
        """
        return write_rows(self.store, self.path, rows, partition, self.unique)

    def commit(self, handle: DeltaTable | None, change: Replacement) -> bool:
        """Commit a change as the version after the handle's; create the table if the handle is None.

        After every 50th version the table's log gets a checkpoint.

        Returns:
            False if another writer has committed that version; nothing was committed then.
        """
        version, now = 0 if handle is None else handle.version() + 1, now_milliseconds()
        transaction = change.transaction
        actions = [
            commit_info(now, "WRITE", {"mode": "Overwrite"}, notes=change.notes),
            transaction_action(transaction.app_id, transaction.version, now),
            *self._description(handle, change, now),
            *(remove_action(file, now) for file in change.removed),
            *(add_action(file, now) for file in change.files),
        ]
        if not put_entry(self.store, self.path, version, actions):
            return False
        if is_log_checkpoint_due(self.path, version):
            checkpoint_log(self.store, self.path, version)
        return True

    def _description(self, handle: DeltaTable | None, change: Replacement, now: int) -> list[Action]:
        if handle is not None and not change.sets_columns:
            return []
        table_id = "" if handle is None else str(handle.metadata().id)
        entry = TableFiles(
            table=self.path, partition_by=self.partition_by, schema=delta_schema_json(self.schema), files=()
        )
        protocol, metadata = table_actions(entry, self.properties, now, table_id, self.comments)
        return [protocol, metadata] if handle is None else [metadata]
