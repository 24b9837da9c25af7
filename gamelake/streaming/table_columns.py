"""The columns of each table, merged from the files of all tasks."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from gamelake.storage.columns import merged
from gamelake.storage.manifests import TableFiles
from gamelake.storage.tables import delta_schema_json
from gamelake.streaming.plan import WrittenFile


class TableColumns:
    """The columns of all tables by their names; they grow with the columns of new files."""

    def __init__(self, schemas: dict[str, pa.Schema]) -> None:
        self.schemas = schemas

    def agree(self, files: Iterable[WrittenFile]) -> tuple[TableFiles, ...]:
        """The files and the merged schema of each table, in the order of table names.

        Raises:
            IncompatibleSchemaError: two files have a column of one name with two types. The column of the lower schema
                id is kept, so that in the next attempt the other records become dead letters.
        """
        by_table: dict[str, list[WrittenFile]] = {}
        for file in sorted(files, key=lambda file: (file.table, file.newest_schema)):
            by_table.setdefault(file.table, []).append(file)
        for table, written in by_table.items():
            for columns in dict.fromkeys(file.columns for file in written):
                self._widen(table, pa.ipc.read_schema(pa.py_buffer(columns)))
        return tuple(
            TableFiles(
                table=table,
                partition_by=written[0].partition_by,
                schema=delta_schema_json(self.schemas[table]),
                files=tuple(file.file for file in written),
                schema_ids=tuple(sorted({each for file in written for each in file.schema_ids})),
            )
            for table, written in by_table.items()
        )

    def learn(self, columns: Mapping[str, pa.Schema]) -> None:
        """Replace the columns of tables, which other writers have widened; `columns` is by table name."""
        self.schemas.update(columns)

    def _widen(self, table: str, columns: pa.Schema) -> None:
        known = self.schemas.get(table)
        self.schemas[table] = columns if known is None else merged(known, columns)
