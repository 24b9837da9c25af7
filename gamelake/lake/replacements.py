"""A commit that puts files in the place of others: for tables that one job alone writes, and writes anew.

Source: Delta Transaction Log Protocol, headings "Actions" and "Transaction Identifiers".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gamelake.lake.actions import ENGINE, add_action, encoded, now_milliseconds, remove_action
from gamelake.lake.appends import BatchTransaction, entry_path, table_actions, transaction_action
from gamelake.lake.comments import NO_COMMENTS, Comments
from gamelake.lake.file_entries import FileEntry
from gamelake.lake.manifest import TableFiles
from gamelake.lake.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """New files of a table, and those that they replace.

    Attributes:
        table_id: the table's own id, empty for a new one.
        properties: the table's, where its columns and properties are set anew; None leaves both as they are.
        notes: what the commit says of itself to whoever reads it.
        comments: what the table and its columns mean, where its columns are set anew.
    """

    entry: TableFiles
    removed: Sequence[FileEntry]
    transaction: BatchTransaction
    table_id: str = ""
    properties: Mapping[str, str] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    comments: Comments = NO_COMMENTS

    def commit(self, store: Store, version: int) -> bool:
        """Try to be a version of the table; gives whether it is."""
        now = now_milliseconds()
        head = [self._info(now), transaction_action(self.transaction, now)]
        if self.properties is not None:
            protocol, metadata = table_actions(self.entry, self.properties, now, self.table_id, self.comments)
            head += [protocol, metadata] if version == 0 else [metadata]
        removed = [remove_action(file, now) for file in self.removed]
        added = [add_action(file, now) for file in self.entry.files]
        return store.put_new(entry_path(self.entry.table, version), encoded([*head, *removed, *added]))

    def _info(self, now: int) -> dict[str, Any]:
        info = {
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": {"mode": "Overwrite"},
            "isBlindAppend": False,
            "engineInfo": ENGINE,
        }
        return {"commitInfo": {**info, **self.notes}}
