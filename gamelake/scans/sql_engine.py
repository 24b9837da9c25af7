"""SQL over Arrow data in this process, with DuckDB.

Inside DuckDB, timestamps are in UTC and have no zone, so that no result depends on the zone of a session or on DuckDB's
version of the rules of zones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from gamelake.delta.columns import MICROSECONDS_UTC

Relation: TypeAlias = pa.Table | ds.Dataset
# DuckDB types without a Delta type, and their casts. A sum of integers is a HUGEINT. A sum outside the range of BIGINT
# becomes the nearest BIGINT, because an error would stop all queries with this sum forever.
_AS_BIGINT = (
    f"coalesce(TRY_CAST({{0}} AS BIGINT), CASE WHEN {{0}} > 0 THEN {2**63 - 1} WHEN {{0}} < 0 THEN {-(2**63)} END)"
)
_KEPT_AS = {"HUGEINT": _AS_BIGINT, "UBIGINT": "CAST({0} AS DECIMAL(20, 0))", "UINTEGER": "CAST({0} AS BIGINT)"}
_FLOATING = frozenset({"FLOAT", "DOUBLE"})
_REPORTING_DATE = "CREATE OR REPLACE MACRO reporting_date(game_name, event_time, event_date) AS {}"
_MEMORY = "256MiB"


class Engine:
    """Runs SQL over relations that were registered by name.

    One thread uses an engine: first `give`, then any number of queries. A query that fails raises `duckdb.Error` and
    leaves the engine usable.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def give(self, name: str, relation: Relation) -> None:
        """Register a relation under a name, or replace the one with this name.

        Args:
            name: of the relation in SQL.
            relation: any columns. A dataset's timestamps must have no zone; a table's are cast to microseconds without
                one.
        """
        if isinstance(relation, pa.Table):
            relation = relation.cast(without_zones(relation.schema))
        self._connection.register(name, relation)

    def set_reporting_date(self, sql: str) -> None:
        """Define the function `reporting_date`; until then it is `event_date`.

        Args:
            sql: an expression over the function's parameters, `game_name`, `event_time` and `event_date`.
        """
        self._connection.execute(_REPORTING_DATE.format(sql))

    def table(self, sql: str) -> pa.Table:
        """Run a query.

        Returns:
            The query's columns and rows in its order, with Delta types: HUGEINT and UINTEGER as the nearest int64,
            UBIGINT as decimal(20, 0), timestamps as microseconds in UTC.
        """
        relation = self._connection.sql(sql)
        kept = ", ".join(
            f"{_KEPT_AS.get(str(kind), '{0}')} AS {{0}}".format(f'"{name}"')
            for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        rows = relation.project(kept).to_arrow_table()
        return rows.cast(pa.schema([_in_utc(field) for field in rows.schema]))

    def floating(self, sql: str) -> frozenset[str]:
        """Return the names of a query's floating-point columns; the query does not run."""
        relation = self._connection.sql(sql)
        pairs = zip(relation.columns, relation.types, strict=True)
        return frozenset(name for name, kind in pairs if str(kind) in _FLOATING)


@contextmanager
def engine(threads: int) -> Iterator[Engine]:
    """Open an engine until the end of the `with` block.

    Each engine has 256 MiB of memory and spills to files in TMPDIR, because several engines run in one process.

    Args:
        threads: the number of DuckDB's threads.

    Example:
        >>> with engine(threads=1) as sql:
        ...     sql.give("events", pa.table({"game": ["chess", "chess", "golf"]}))
        ...     sql.table("SELECT game, count(*) AS events FROM events GROUP BY game ORDER BY game").to_pydict()
        {'game': ['chess', 'golf'], 'events': [2, 1]}
    """
    with (
        TemporaryDirectory(prefix="gamelake-sql-") as folder,
        duckdb.connect(
            ":memory:", config={"threads": threads, "memory_limit": _MEMORY, "temp_directory": folder}
        ) as connection,
    ):
        # Programs print one JSON document.
        connection.execute("SET enable_progress_bar = false")
        opened = Engine(connection)
        opened.set_reporting_date("event_date")
        yield opened


def without_zones(schema: pa.Schema) -> pa.Schema:
    """Return the same columns in the same order; timestamps, nested ones included, in microseconds without a zone."""
    return pa.schema([field.with_type(_without_zone(field.type)) for field in schema])


def _without_zone(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_zone(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_zone(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_zone(kind.key_type), _without_zone(kind.item_type))
    return kind


def _in_utc(field: pa.Field) -> pa.Field:
    return field.with_type(MICROSECONDS_UTC) if pa.types.is_timestamp(field.type) else field
