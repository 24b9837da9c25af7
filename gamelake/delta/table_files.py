"""The files that one commit adds to a table, written before the commit."""

import msgspec

from gamelake.delta.data_files import DataFile


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a commit adds to one table.

    Attributes:
        table: the table's path.
        partition_by: the partition columns, in order.
        schema: the table's Delta schema as JSON, with the columns that the files add.
        files: the files.
        schema_ids: the ids of the Protobuf schemas that the rows were decoded with.
    """

    table: str
    partition_by: tuple[str, ...]
    schema: str
    files: tuple[DataFile, ...]
    schema_ids: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows that the commit adds to the table."""
        return sum(file.rows for file in self.files)
