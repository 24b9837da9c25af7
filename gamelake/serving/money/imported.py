"""Gold tables whose rows are imported from files: each import replaces the rows of its days."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.declared_table import DeclaredTable
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset

DAY = "event_date"
_ATTEMPTS = 10


def without_mark(lines: Iterable[str]) -> Iterator[str]:
    """Yield a file's lines without the byte order mark that spreadsheets write before the first one."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix("\ufeff")


def create_table(store: Store, definition: DeclaredTable) -> None:
    """Create a table without rows, unless it exists, so that views over it exist.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    replace_rows(store, definition, definition.schema.empty_table(), ())


def replace_rows(store: Store, definition: DeclaredTable, rows: pa.Table, keys: Sequence[str]) -> None:
    """Replace the rows of a table whose day and key columns equal those of a new row.

    Without new rows, create the table unless it exists.

    Args:
        store: the lakehouse.
        definition: the table, which is partitioned by `event_date`.
        rows: the new rows, with the columns of the table.
        keys: the names of the key columns, besides `event_date`.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    table = OwnedTable(
        store=store,
        path=definition.path,
        schema=definition.schema,
        partition_by=definition.partition_by,
        comments=definition.comments,
    )
    days = sorted(set(rows.column(DAY).to_pylist()))
    names = {str(day) for day in days}

    def attempt() -> None:
        handle = table.open()
        if handle is not None and not days:
            return
        removed = table.files(handle, lambda file: file.partition[DAY] in names)
        former = definition.schema.empty_table()
        if removed:
            former = dataset(store.location, definition.path, definition.schema, removed).to_table()
        made = pa.concat_tables([_without(former, rows, [DAY, *keys]), rows]).combine_chunks()
        files = [
            table.write(made.filter(pc.field(DAY) == pa.scalar(day)).drop_columns([DAY]), {DAY: str(day)})
            for day in days
        ]
        version = 0 if handle is None else handle.version() + 1
        transaction = BatchTransaction(definition.name.replace("_", "-"), version)
        if not table.commit(handle, Replacement(files=files, removed=removed, transaction=transaction)):
            raise CommitConflictError

    commit_with_retry(definition.path, _ATTEMPTS, attempt)


def _without(former: pa.Table, rows: pa.Table, keys: list[str]) -> pa.Table:
    """Return the former rows whose keys no new row has."""
    kept = former.join(rows.select(keys).group_by(keys).aggregate([]), keys, join_type="left anti")
    return kept.select(former.column_names)
