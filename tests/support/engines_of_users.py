"""Reads a Delta table with one engine that users bring, in that engine's own environment (`build/engines`).

`python tests/support/engines_of_users.py ENGINE TABLE` reads questions from standard input and writes answers, both as
a line of JSON each: `{"result": ...}`, or `{"error": ...}`. A question has a version of the table, a method of
`tests.support.engines.OpenTable`, and its arguments; `encoded` defines how values are encoded. The program imports
nothing of the platform, because this environment lacks the platform's packages.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any


def encoded(value: object) -> object:
    """A value for JSON: what JSON has not is a pair of its type's name and its text."""
    if isinstance(value, datetime | date | Decimal):
        return [type(value).__name__, str(value)]
    return value


def decoded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parse: dict[str, Callable[[str], object]]
    parse = {"datetime": datetime.fromisoformat, "date": date.fromisoformat, "Decimal": Decimal}
    return parse[value[0]](value[1])


class SqlTable:
    """A version of a table that is read by SQL; engines have their own way of naming it, its columns and values."""

    source: str
    settings = ""

    def scalar(self, query: str) -> Any:
        """The only value of a result."""
        return self.values_of(query)[0]

    def values_of(self, query: str) -> list[Any]:
        """The first column of a result."""
        raise NotImplementedError

    def column(self, place: list[str]) -> str:
        """A column, or a field inside of structs."""
        return ".".join(f'"{step}"' for step in place)

    def literal(self, value: object) -> str:
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, datetime):
            return f"TIMESTAMPTZ '{value}'"
        return f"DATE '{value}'" if isinstance(value, date) else str(value)

    def count(self) -> object:
        return self.scalar(f"SELECT count(*) FROM {self.source}{self.settings}")

    def total(self, place: list[str]) -> object:
        return self.scalar(f"SELECT sum({self.column(place)}) FROM {self.source}{self.settings}")

    def values(self, place: list[str]) -> object:
        return self.values_of(f"SELECT {self.column(place)} FROM {self.source}{self.settings}")

    def matching(self, place: list[str], comparison: str, value: object) -> object:
        condition = f"{self.column(place)} {comparison} {self.literal(value)}"
        return self.scalar(f"SELECT count(*) FROM {self.source} WHERE {condition}{self.settings}")

    def missing(self, place: list[str]) -> object:
        condition = f"{self.column(place)} IS NULL"
        return self.scalar(f"SELECT count(*) FROM {self.source} WHERE {condition}{self.settings}")


class InDuckDBsExtension(SqlTable):
    """DuckDB over its own Delta extension, which is built on the Delta kernel."""

    def __init__(self, path: str, version: int) -> None:
        import duckdb
        import duckdb_extension_delta

        [extension] = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
        self._connection = duckdb.connect()
        self._connection.execute(f"LOAD '{extension}'; SET TimeZone = 'UTC'")
        self.source = f"delta_scan('{path}', version = {version})"

    def values_of(self, query: str) -> list[Any]:
        return [row[0] for row in self._connection.execute(query).fetchall()]


class InClickHouse(SqlTable):
    """ClickHouse in the process, over its own reader."""

    def __init__(self, path: str, version: int) -> None:
        # It reads no other folder than its own.
        os.chdir(path)
        self.source = f"deltaLakeLocal('{path}')"
        # Fields of structs are not columns of a Parquet file, as it takes them for by default.
        self.settings = f" SETTINGS delta_lake_snapshot_version = {version}, optimize_functions_to_subcolumns = 0"

    def values_of(self, query: str) -> list[Any]:
        import chdb

        lines = str(chdb.query(query, "JSONCompactEachRow")).splitlines()
        return [json.loads(line)[0] for line in lines]

    def column(self, place: list[str]) -> str:
        found = f"`{place[0]}`"
        for step in place[1:]:
            found = f"tupleElement({found}, '{step}')"
        return found

    def literal(self, value: object) -> str:
        if isinstance(value, str):
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if isinstance(value, datetime):
            return f"toDateTime64('{value:%Y-%m-%d %H:%M:%S.%f}', 6, 'UTC')"
        if isinstance(value, date):
            return f"toDate32('{value}')"
        return f"toDecimal128('{value}', 0)" if isinstance(value, Decimal) else str(value)


class InDaft:
    """Daft over its own reader."""

    def __init__(self, path: str, version: int) -> None:
        import daft

        self._daft = daft
        self._rows = daft.read_deltalake(path, version=version)

    def _column(self, place: list[str]) -> Any:
        found = self._daft.col(place[0])
        for step in place[1:]:
            found = found.get(step)
        return found

    def count(self) -> object:
        return self._rows.count_rows()

    def total(self, place: list[str]) -> object:
        return self._rows.agg(self._column(place).sum().alias("asked")).to_pydict()["asked"][0]

    def values(self, place: list[str]) -> object:
        return self._rows.select(self._column(place).alias("asked")).to_pydict()["asked"]

    def matching(self, place: list[str], comparison: str, value: object) -> object:
        column, literal = self._column(place), self._daft.lit(value)
        conditions = {"=": column == literal, ">=": column >= literal, "<=": column <= literal}
        return self._rows.where(conditions[comparison]).count_rows()

    def missing(self, place: list[str]) -> object:
        return self._rows.where(self._column(place).is_null()).count_rows()


class InSail:
    """Sail, which runs Spark's DataFrames without a JVM, over its own reader."""

    _server: Any = None
    _session: Any = None

    def __init__(self, path: str, version: int) -> None:
        from pyspark.sql import functions

        self._functions = functions
        self._rows = self._started().read.format("delta").option("versionAsOf", version).load(path)

    @classmethod
    def _started(cls) -> Any:
        if cls._session is None:
            from pysail.spark import SparkConnectServer
            from pyspark.sql import SparkSession

            cls._server = SparkConnectServer("127.0.0.1", 0)
            cls._server.start(background=True)
            host, port = cls._server.listening_address
            cls._session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
            cls._session.conf.set("spark.sql.session.timeZone", "UTC")
        return cls._session

    def _column(self, place: list[str]) -> Any:
        return self._functions.col(".".join(f"`{step}`" for step in place))

    def count(self) -> object:
        return self._rows.count()

    def total(self, place: list[str]) -> object:
        return self._rows.agg(self._functions.sum(self._column(place))).collect()[0][0]

    def values(self, place: list[str]) -> object:
        return [row[0] for row in self._rows.select(self._column(place)).collect()]

    def matching(self, place: list[str], comparison: str, value: object) -> object:
        column, literal = self._column(place), self._functions.lit(value)
        conditions = {"=": column == literal, ">=": column >= literal, "<=": column <= literal}
        return self._rows.where(conditions[comparison]).count()

    def missing(self, place: list[str]) -> object:
        return self._rows.where(self._column(place).isNull()).count()


class InPandas:
    """pandas, over delta-rs and Arrow."""

    def __init__(self, path: str, version: int) -> None:
        from deltalake import DeltaTable

        self._rows = DeltaTable(path, version=version).to_pandas(types_mapper=None)

    def _series(self, place: list[str]) -> Any:
        found = self._rows[place[0]]
        for step in place[1:]:
            found = found.map(lambda value, name=step: value.get(name) if isinstance(value, dict) else None)
        return found

    def count(self) -> object:
        return len(self._rows)

    def total(self, place: list[str]) -> object:
        return float(self._series(place).sum())

    def values(self, place: list[str]) -> object:
        return self._series(place).tolist()

    def matching(self, place: list[str], comparison: str, value: object) -> object:
        found = self._series(place).dropna()
        conditions = {"=": found == value, ">=": found >= value, "<=": found <= value}
        return int(conditions[comparison].sum())

    def missing(self, place: list[str]) -> object:
        return int(self._series(place).isna().sum())


ENGINES: dict[str, Callable[[str, int], Any]] = {
    "ClickHouse": InClickHouse,
    "Daft": InDaft,
    "DuckDB's extension": InDuckDBsExtension,
    "pandas": InPandas,
    "Sail": InSail,
}


def main() -> None:
    """Answer until standard input ends."""
    engine, path = ENGINES[sys.argv[1]], sys.argv[2]
    logging.disable(logging.WARNING)
    # Engines may print; answers go where nothing else does.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    tables: dict[int, Any] = {}
    for line in sys.stdin:
        version, method, arguments = json.loads(line)
        try:
            if version not in tables:
                tables[version] = engine(path, version)
            values = [argument if isinstance(argument, str) else decoded(argument) for argument in arguments[1:]]
            places = [arguments[0]] if arguments else []
            answer = {"result": getattr(tables[version], method)(*places, *values)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer, default=encoded), file=answers, flush=True)


if __name__ == "__main__":
    main()
