"""The files of one game in a KPI table that is partitioned by game and sorted by key."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from gamelake.delta.log.codec import FileEntry
from gamelake.model.arrays import Flags
from gamelake.serving.gold.runs import KeyRun, sorted_by_key, split, touched
from gamelake.serving.kpis.table_files import FileChange, TableFilesOf


@dataclass(frozen=True, slots=True)
class GameFiles:
    """One game's files.

    Attributes:
        table: the table, opened.
        game: the game's title.
        rows_per_file: the most rows of a new file.
    """

    table: TableFilesOf
    game: str
    rows_per_file: int

    @property
    def schema(self) -> pa.Schema:
        """The columns of a file."""
        definition = self.table.definition
        return pa.schema([field for field in definition.schema if field.name not in definition.partition_by])

    @property
    def _partition(self) -> dict[str, str | None]:
        return {"game_name": self.game}

    @property
    def _runs(self) -> list[KeyRun]:
        return [run for run in self.table.runs() if run.file.partition == self._partition]

    def rows_since(self, day: date) -> pa.Table:
        """Read the files that may have rows from a day on, with all their columns."""
        files = [run.file for run in self._runs if run.bounds is None or run.bounds[1][:1] >= ((False, day),)]
        return self._rows(files)

    def rows_of(self, days: Iterable[date]) -> pa.Table:
        """Read the files that may have rows of some days, with all their columns."""
        prefixes = [((False, day),) for day in days]

        def may_have(run: KeyRun) -> bool:
            return run.bounds is None or any(run.bounds[0][:1] <= each <= run.bounds[1][:1] for each in prefixes)

        return self._rows(run.file for run in self._runs if may_have(run))

    def _rows(self, files: Iterable[FileEntry]) -> pa.Table:
        schema = self.schema
        return pa.concat_tables(
            [schema.empty_table(), *(self.table.recent_rows_of(file).cast(schema) for file in files)]
        )

    def replace(self, removed: pa.Table, rows: pa.Table, stays: Callable[[pa.Table], Flags]) -> FileChange:
        """Write the files whose rows change, sorted by key.

        Args:
            removed: the former rows that the new ones replace; at least the key columns.
            rows: the new rows, with the columns of `schema` in any order of rows.
            stays: returns a flag for each of a file's rows: False for a row of `removed`.
        """
        names, change = self.table.definition.sorted_by, FileChange()
        rows = sorted_by_key(rows, names)
        keys = sorted_by_key(pa.concat_tables([removed.select(names), rows.select(names)]), names)
        for concerned in touched(self._runs, keys):
            old = sorted_by_key(self._rows(concerned.files), names)
            kept = old.filter(pa.array(stays(old)))
            made = pa.concat_tables([kept, concerned.of(rows, names)])
            made = sorted_by_key(made, names)
            if not made.equals(old):
                for part in split(made, names, self.rows_per_file):
                    change.written.append(self.table.write(part, self._partition))
                    self.table.keep(change.written[-1].path, part)
                change.removed.extend(concerned.files)
        return change
