"""Declares a table of gold: its columns, and the meaning of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from gamelake.delta.comments import Comments


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table of the layer gold, whose columns and their meanings are declared together.

    Attributes:
        name: the table's name.
        description: the table's comment.
        keys: the columns that identify a row, and that rows are sorted by.
        columns: the type and the meaning of each column, in order.
        partition_by: the columns of which each file has only one value.
        fields: the meaning of each field of a struct, by `column.field`.
    """

    name: str
    description: str
    keys: tuple[str, ...]
    columns: Mapping[str, tuple[pa.DataType, str]]
    partition_by: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The table's path in the lakehouse."""
        return f"gold/{self.name}"

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The key columns that the rows of a file are sorted by."""
        return tuple(key for key in self.keys if key not in self.partition_by)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns and their types, in order."""
        return pa.schema([(name, kind) for name, (kind, _) in self.columns.items()])

    @property
    def comments(self) -> Comments:
        """The table's description and its columns' meanings."""
        return Comments(
            self.description, {**{name: meaning for name, (_, meaning) in self.columns.items()}, **self.fields}
        )
