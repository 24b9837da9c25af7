"""Delta tables as the fan-out writes them: each batch appended once, whoever tries again."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    Transaction,
    create_table_with_add_actions,
)

from gamelake.lake.columns import delta_field
from gamelake.lake.evolution import merged
from gamelake.lake.manifest import TableFiles
from gamelake.lake.store import Location

_ATTEMPTS = 20
_CHECKPOINT_EVERY = 50
# Checkpoints are made beside the stream; inside a commit they would stall all tables in the same batch.
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_PROPERTIES = {"delta.dataSkippingNumIndexedCols": "32", "delta.checkpointInterval": str(_CHECKPOINT_EVERY)}


class CommitOutcome(StrEnum):
    """What became of a commit."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already_committed"


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """The transaction id under which a table takes a batch: application and a version that only grows."""

    app_id: str
    version: int


class DeltaTables:
    """The tables of a lakehouse, opened once and then followed commit by commit."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._open: dict[str, DeltaTable] = {}
        self._upkeep = ThreadPoolExecutor(1, thread_name_prefix="delta-checkpoints")

    def __enter__(self) -> Self:
        """Use the tables until the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the checkpoint that is being written end; drop those that wait."""
        self._upkeep.shutdown(wait=True, cancel_futures=True)

    def schema(self, table: str) -> pa.Schema | None:
        """The table's columns, None if there is no such table yet."""
        handle = self._refreshed(table)
        return None if handle is None else schema_of(handle)

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """The last batch that the table took from an application."""
        handle = self._refreshed(table)
        return None if handle is None else handle.transaction_version(app_id)

    def append(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        """Add a batch's files to a table, creating it or adding columns where needed; a second time does nothing.

        Raises:
            CommitFailedError: other writers were faster at every attempt.
        """
        conflict: DeltaError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self._append_once(entry, transaction)
            except CommitFailedError as error:
                # Another writer changed the table between our look and our commit: look again.
                conflict = error
            except DeltaError as error:
                if "already exists" not in str(error):
                    raise
                conflict = error
        raise CommitFailedError(f"{entry.table}: other writers were faster {_ATTEMPTS} times") from conflict

    def _append_once(self, entry: TableFiles, transaction: BatchTransaction) -> CommitOutcome:
        handle = self._refreshed(entry.table)
        if handle is None:
            self._create(entry, transaction)
            return CommitOutcome.COMMITTED
        taken = handle.transaction_version(transaction.app_id)
        if taken is not None and taken >= transaction.version:
            return CommitOutcome.ALREADY_COMMITTED
        _add_columns(handle, Schema.from_json(entry.schema))
        handle.create_write_transaction(
            [*_add_actions(entry)],
            "append",
            handle.schema(),
            partition_by=list(entry.partition_by),
            commit_properties=_commit_properties(transaction),
            post_commithook_properties=_NO_HOOKS,
        )
        self._keep_log_short(handle, entry.table)
        return CommitOutcome.COMMITTED

    def _create(self, entry: TableFiles, transaction: BatchTransaction) -> None:
        create_table_with_add_actions(
            self._location.child(entry.table),
            Schema.from_json(entry.schema),
            _add_actions(entry),
            partition_by=list(entry.partition_by),
            name=entry.table.replace("/", "_"),
            configuration=_PROPERTIES,
            storage_options=dict(self._location.options),
            commit_properties=_commit_properties(transaction),
            post_commithook_properties=_NO_HOOKS,
        )

    def _refreshed(self, table: str) -> DeltaTable | None:
        handle = self._open.get(table)
        if handle is not None:
            handle.update_incremental()
            return handle
        try:
            self._open[table] = open_table(self._location, table)
        except TableNotFoundError:
            return None
        return self._open[table]

    def _keep_log_short(self, handle: DeltaTable, table: str) -> None:
        """A reader replays at most so many commits after the last checkpoint."""
        if (handle.version() + 1) % _CHECKPOINT_EVERY == 0:
            self._upkeep.submit(lambda: open_table(self._location, table).create_checkpoint())


def open_table(location: Location, table: str) -> DeltaTable:
    """Open a table by its path inside the lakehouse.

    Raises:
        TableNotFoundError: there is no table.
    """
    return DeltaTable(location.child(table), storage_options=dict(location.options))


def schema_of(handle: DeltaTable) -> pa.Schema:
    """A table's columns in the types that `gamelake.lake.columns` gives."""
    return pa.schema([delta_field(field) for field in pa.schema(handle.schema())])


def delta_schema_json(schema: pa.Schema) -> str:
    """A schema as Delta's log has it."""
    return Schema.from_arrow(schema).to_json()


def _add_columns(handle: DeltaTable, wanted: Schema) -> None:
    have = schema_of(handle)
    target = merged(have, pa.schema(wanted))
    if target is have:
        return
    changed = [field for field in target if have.get_field_index(field.name) < 0 or have.field(field.name) != field]
    fields: list[Field] = Schema.from_arrow(pa.schema(changed)).fields
    handle.alter.add_columns(fields, post_commithook_properties=_NO_HOOKS)
    handle.update_incremental()


def _commit_properties(transaction: BatchTransaction) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(transaction.app_id, transaction.version)],
        custom_metadata={"gamelake.batch": f"{transaction.app_id}/{transaction.version}"},
    )


def _add_actions(entry: TableFiles) -> list[AddAction]:
    now = int(time.time() * 1000)
    return [AddAction(file.path, file.size, file.partition, now, True, file.statistics) for file in entry.files]
