"""The audit's tables: what a topic's records become, and appends that a table has once.

A commit has the topic's next offset as its transaction, so the table itself says where to continue. Each commit is put
only if no other process has put that version: the process that is not first starts again from the table's state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import BatchTransaction, TableHead
from gamelake.delta.columns import delta_schema_json, merged
from gamelake.delta.comments import Comments
from gamelake.delta.data_files import write_rows
from gamelake.delta.log.checkpoints import is_log_checkpoint_due
from gamelake.delta.log.table_features import TableUse
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, checkpoint_log, open_table
from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.store import Location, Store

DAY = "audit_date"
_RECORD_COLUMNS = (
    pa.field("recorded_at", pa.timestamp("us", "UTC")),
    pa.field("kafka_offset", pa.int64()),
    pa.field("unreadable", pa.string()),
)
_LONGEST_UNREADABLE = 10_000

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTable:
    """A table, and the topic that it has the records of.

    Attributes:
        path: in the lakehouse.
        columns: those of `row`; each table also has the time, the offset and, of a record that `row` refuses, the text.
        row: a record's value as a row; raises ValueError for a value of another format.
        mask: applied to the text of a record of another format.
    """

    path: str
    topic: str
    columns: pa.Schema
    comments: Comments
    row: Callable[[bytes], Row]
    mask: Callable[[str], str]

    @property
    def schema(self) -> pa.Schema:
        """All columns but the day, by which the table is partitioned."""
        return pa.schema([*_RECORD_COLUMNS, *self.columns])

    def row_of(self, offset: int, recorded_at: datetime, value: bytes) -> Row:
        """Convert a record to a row, whatever its value is."""
        row: Row = {"recorded_at": recorded_at, "kafka_offset": offset}
        try:
            return row | self.row(value)
        # JSON that is nested too deeply is a RecursionError.
        except (ValueError, RecursionError):
            text = value[: 4 * _LONGEST_UNREADABLE].decode(errors="replace")
            return row | {"unreadable": self.mask(text)[:_LONGEST_UNREADABLE]}


class AuditAppender:
    """Appends rows to one table, as the only process that does."""

    def __init__(self, location: Location, table: AuditTable, topic_id: str, failpoints: Failpoints) -> None:
        """Open the table, if it exists; `topic_id` is that of the topic in Kafka, which has offsets of its own."""
        self._location, self._store, self._table = location, Store(location), table
        self._app_id = f"audit/{topic_id}"
        self._failpoints = failpoints
        self._schema = delta_schema_json(pa.schema([*table.schema, pa.field(DAY, pa.date32())]))
        self._head: TableHead | None = None
        self.reopen()

    @property
    def exists(self) -> bool:
        """True if the table has been created."""
        return self._head is not None

    @property
    def position(self) -> int | None:
        """The offset after the last record that the table has; None if it has none of this topic."""
        return self._head.taken[self._app_id] if self._head is not None else None

    def reopen(self) -> None:
        """Read what the table has, after this process has committed otherwise."""
        try:
            handle = open_table(self._location, self._table.path)
        except TableNotFoundError:
            return
        self._head = TableHead.of(self._store, self._table.path, handle, self._app_id, TableUse.APPEND)
        if merged(self._head.schema, self._table.schema) is not self._head.schema:
            with DeltaTables(self._location) as tables:
                tables.widen(self._entry(()))
            self._head.follow(self._store, self._table.path)

    def append(self, rows: Sequence[Row], next_offset: int) -> None:
        """Commit rows, and the offset after the last of their records, at once.

        Raises:
            TransientError: another process has committed to the table.
        """
        entry = self._entry(rows)
        self._failpoints.reach(Failpoint.AFTER_AUDIT_FILE)
        transaction = BatchTransaction(self._app_id, next_offset)
        if self._head is None:
            self._head = TableHead.create(self._store, entry, transaction, self._table.comments)
            is_committed = self._head is not None
        else:
            is_committed = self._head.put(self._store, entry, transaction)
        if not is_committed or self._head is None:
            raise TransientError(
                f"another process writes {self._table.path}; this one starts again from the table's state"
            )
        self._failpoints.reach(Failpoint.AFTER_AUDIT_COMMIT)
        if is_log_checkpoint_due(self._table.path, self._head.version):
            checkpoint_log(self._store, self._table.path, self._head.version)

    def _entry(self, rows: Sequence[Row]) -> TableFiles:
        written = pa.Table.from_pylist(list(rows), schema=self._table.schema) if rows else None
        files = []
        for day, of_day in _by_day(written) if written is not None else ():
            files.append(write_rows(self._store, self._table.path, of_day, {DAY: day.isoformat()}))
        return TableFiles(table=self._table.path, partition_by=(DAY,), schema=self._schema, files=tuple(files))


def _by_day(rows: pa.Table) -> Sequence[tuple[date, pa.Table]]:
    days = pc.cast(rows["recorded_at"], pa.date32())
    return [(day.as_py(), rows.filter(pc.equal(days, day))) for day in pc.unique(days)]
