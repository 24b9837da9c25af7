"""Merges the columns of each table from the files of all tasks."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import pyarrow as pa

from gamelake.delta.columns import delta_schema_json, merged
from gamelake.delta.table_files import TableFiles
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.model.logs import event_logger
from gamelake.streaming.plan import WrittenFile

log = event_logger(__name__)

Result = TypeVar("Result")


class TableColumns:
    """The columns of all tables; they grow with the columns of new files.

    Attributes:
        schemas: the columns by table name.
    """

    def __init__(self, schemas: dict[str, pa.Schema]) -> None:
        self.schemas = schemas

    def agree_on(
        self, run: Callable[[], tuple[Result, Iterable[WrittenFile]]]
    ) -> tuple[Result, tuple[TableFiles, ...]]:
        """Run tasks until their files agree on the columns of each table.

        Each run finds the conflicts of all tables, and the next run writes the records with the conflicting columns to
        the dead letters. If a run finds only conflicts that were known before it, the tables will refuse its files.

        Args:
            run: runs the tasks with `schemas`, and returns their reports and all files.

        Returns:
            The reports of the last run, and its files with their columns, one entry per table, in the order of names.
        """
        while True:
            before = dict(self.schemas)
            result, files = run()
            tables, conflicts = self._merge(files)
            if all(self.schemas.get(table) == before.get(table) for table in conflicts):
                return result, tables
            log.warning("tasks_run_again", reason=next(iter(conflicts.values())), tables=[*conflicts])

    def agree(self, files: Iterable[WrittenFile]) -> tuple[TableFiles, ...]:
        """Merge the columns of files, and return one entry per table, in the order of table names.

        Args:
            files: of any tables, in any order.

        Raises:
            IncompatibleSchemaError: two files have a column of one name with two types.
        """
        tables, conflicts = self._merge(files)
        if conflicts:
            raise IncompatibleSchemaError("; ".join(conflicts.values()))
        return tables

    def _merge(self, files: Iterable[WrittenFile]) -> tuple[tuple[TableFiles, ...], dict[str, str]]:
        """Widen all tables by their files, the lowest schema id first; return the files and the conflicts by table."""
        by_table: dict[str, list[WrittenFile]] = {}
        for file in sorted(files, key=lambda file: (file.table, file.newest_schema)):
            by_table.setdefault(file.table, []).append(file)
        conflicts: dict[str, str] = {}
        tables = []
        for table, written in by_table.items():
            refused = pa.schema([])
            for columns in dict.fromkeys(file.columns for file in written):
                schema = pa.ipc.read_schema(pa.py_buffer(columns))
                try:
                    self._widen(table, schema)
                except IncompatibleSchemaError as error:
                    conflicts[table], refused = f"{table}: {error}", schema
            tables.append(
                TableFiles(
                    table=table,
                    partition_by=written[0].partition_by,
                    schema=delta_schema_json(self._with(table, refused)),
                    files=tuple(file.file for file in written),
                    schema_ids=tuple(sorted({each for file in written for each in file.schema_ids})),
                )
            )
        return tuple(tables), conflicts

    def _with(self, table: str, refused: pa.Schema) -> pa.Schema:
        """Return the columns of a table, with those of refused files in the files' types: so the table refuses them."""
        known = self.schemas.get(table, refused)
        return pa.schema([*{field.name: field for field in (*known, *refused)}.values()]) if len(refused) else known

    def learn(self, columns: Mapping[str, pa.Schema]) -> None:
        """Replace the columns of tables that other writers have widened.

        Args:
            columns: all columns of each of these tables, by table name.
        """
        self.schemas.update(columns)

    def _widen(self, table: str, columns: pa.Schema) -> None:
        known = self.schemas.get(table)
        widened = columns if known is None else merged(known, columns)
        delta_schema_json(widened)
        self.schemas[table] = widened
