"""SQL over Arrow, in the process that holds it.

Moments are in UTC and have no zone inside: DuckDB knows zones by an extension only, which no package index has.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from gamelake.storage.columns import MICROSECONDS_UTC

Relation: TypeAlias = pa.Table | ds.Dataset
# What Delta has no type for, as what it is kept.
_KEPT_AS = {"HUGEINT": "BIGINT", "UBIGINT": "DECIMAL(20, 0)", "UINTEGER": "BIGINT"}
_FLOATING = frozenset({"FLOAT", "DOUBLE"})
_MEMORY = "256MiB"


class Engine:
    """Answers questions about relations that it was given by name."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def give(self, name: str, relation: Relation) -> None:
        """Name a relation, in the place of what had the name; a dataset's moments must have no zone."""
        if isinstance(relation, pa.Table):
            relation = relation.cast(without_zones(relation.schema))
        self._connection.register(name, relation)

    def table(self, sql: str) -> pa.Table:
        """The rows that a question gives, in types that Delta tables keep."""
        relation = self._connection.sql(sql)
        kept = ", ".join(
            f'CAST("{name}" AS {_KEPT_AS[str(kind)]}) AS "{name}"' if str(kind) in _KEPT_AS else f'"{name}"'
            for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        rows = relation.project(kept).to_arrow_table()
        return rows.cast(pa.schema([_in_utc(field) for field in rows.schema]))

    def floating(self, sql: str) -> frozenset[str]:
        """The columns of a question that are floating-point numbers."""
        relation = self._connection.sql(sql)
        pairs = zip(relation.columns, relation.types, strict=True)
        return frozenset(name for name, kind in pairs if str(kind) in _FLOATING)


@contextmanager
def engine(threads: int) -> Iterator[Engine]:
    """An engine of so many threads, until the end of the block.

    What a question needs beyond its share of memory goes to files, in TMPDIR: several engines work in one process.
    """
    with (
        TemporaryDirectory(prefix="gamelake-sql-") as folder,
        duckdb.connect(
            ":memory:", config={"threads": threads, "memory_limit": _MEMORY, "temp_directory": folder}
        ) as connection,
    ):
        yield Engine(connection)


def without_zones(schema: pa.Schema) -> pa.Schema:
    """The same columns, their moments without a zone."""
    return pa.schema([_without_zone(field) for field in schema])


def _without_zone(field: pa.Field) -> pa.Field:
    return field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field


def _in_utc(field: pa.Field) -> pa.Field:
    return field.with_type(MICROSECONDS_UTC) if pa.types.is_timestamp(field.type) else field
