"""Programs that read Delta tables, each by its own code, behind one interface."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import eq, ge, le
from pathlib import Path
from typing import Any, Protocol

import datafusion
import duckdb
import polars
import pyarrow as pa
from datafusion import functions as in_datafusion
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as in_spark

from tests.support.engines_of_users import encoded

Place = tuple[str, ...]
_ENGINES = Path(__file__).parents[2] / "build/engines"
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {"=": eq, ">=": ge, "<=": le}


class OpenTable(Protocol):
    """A version of a table as an engine reads it. A place is a column, or a field inside of structs."""

    def count(self) -> int:
        """The number of rows."""

    def total(self, place: Place) -> object:
        """The sum of a column."""

    def values(self, place: Place) -> list[object]:
        """A column's values, in no order."""

    def matching(self, place: Place, comparison: str, value: object) -> int:
        """The number of rows whose value compares to another one; see `COMPARISONS`."""

    def missing(self, place: Place) -> int:
        """The number of rows without a value."""

    def rows(self) -> pa.Table:
        """All rows, as the engine hands them over in Arrow."""


class OtherEngine:
    """An engine in an environment of its own, as a process that answers about one table; see `engines_of_users`."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        command = (str(_ENGINES / "bin/python"), "-I", str(Path(__file__).with_name("engines_of_users.py")), name, path)
        # Nothing that pytest has set, such as a path of modules.
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TZ": "UTC"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
        )

    @staticmethod
    def is_installed() -> bool:
        """Return True if `make engines` was run."""
        return (_ENGINES / "bin/python").exists()

    def ask(self, version: int, method: str, *arguments: object) -> Any:  # noqa: ANN401
        """Have a method of `OpenTable` called there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps((version, method, arguments), default=encoded), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline() or '{"error": "the engine has ended"}')
        if "error" in answer:
            raise OtherEngineError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._process.communicate()


class OtherEngineError(Exception):
    """What an engine in another environment has raised."""


@dataclass
class InOtherEngine:
    """A version of a table as an engine of another environment reads it."""

    engine: OtherEngine
    path: Path
    version: int

    def count(self) -> int:
        return int(self.engine.ask(self.version, "count"))

    def total(self, place: Place) -> object:
        return self.engine.ask(self.version, "total", place)

    def values(self, place: Place) -> list[object]:
        found: list[object] = self.engine.ask(self.version, "values", place)
        return found

    def matching(self, place: Place, comparison: str, value: object) -> int:
        return int(self.engine.ask(self.version, "matching", place, comparison, encoded(value)))

    def missing(self, place: Place) -> int:
        return int(self.engine.ask(self.version, "missing", place))

    def rows(self) -> pa.Table:
        raise NotImplementedError


@dataclass
class InSpark:
    """Delta's own reader."""

    session: SparkSession
    path: Path
    version: int

    @cached_property
    def _rows(self) -> Any:  # noqa: ANN401 # a DataFrame, which pyspark has two of
        return self.session.read.format("delta").option("versionAsOf", self.version).load(str(self.path))

    @staticmethod
    def _column(place: Place) -> Any:  # noqa: ANN401
        return in_spark.col(".".join(f"`{step}`" for step in place))

    def count(self) -> int:
        return int(self._rows.count())

    def total(self, place: Place) -> object:
        return self._rows.agg(in_spark.sum(self._column(place))).collect()[0][0]

    def values(self, place: Place) -> list[object]:
        return [row[0] for row in self._rows.select(self._column(place)).collect()]

    def matching(self, place: Place, comparison: str, value: object) -> int:
        return int(self._rows.where(COMPARISONS[comparison](self._column(place), in_spark.lit(value))).count())

    def missing(self, place: Place) -> int:
        return int(self._rows.where(self._column(place).isNull()).count())

    def rows(self) -> pa.Table:
        return self._rows.toArrow()


@dataclass
class InPolars:
    """Polars skips files by the statistics, and takes partition values from paths."""

    path: Path
    version: int

    @cached_property
    def _rows(self) -> polars.LazyFrame:
        return polars.scan_delta(str(self.path), version=self.version)

    @staticmethod
    def _column(place: Place) -> polars.Expr:
        column = polars.col(place[0])
        for step in place[1:]:
            column = column.struct.field(step)
        return column

    def count(self) -> int:
        return int(self._rows.select(polars.len()).collect().item())

    def total(self, place: Place) -> object:
        return self._rows.select(self._column(place).sum()).collect().item()

    def values(self, place: Place) -> list[object]:
        return self._rows.select(self._column(place)).collect().to_series().to_list()

    def matching(self, place: Place, comparison: str, value: object) -> int:
        return self._found(COMPARISONS[comparison](self._column(place), polars.lit(value)))

    def missing(self, place: Place) -> int:
        return self._found(self._column(place).is_null())

    def rows(self) -> pa.Table:
        return self._rows.collect().to_arrow()

    def _found(self, condition: polars.Expr) -> int:
        return int(self._rows.filter(condition).select(polars.len()).collect().item())


@dataclass
class InDataFusion:
    """DataFusion over the table provider of delta-rs."""

    path: Path
    version: int

    # The table provider needs its context for as long as it is read.
    @cached_property
    def _context(self) -> datafusion.SessionContext:
        context = datafusion.SessionContext()
        context.register_table("asked", DeltaTable(self.path, version=self.version))
        return context

    @property
    def _rows(self) -> datafusion.DataFrame:
        return self._context.table("asked")

    @staticmethod
    def _column(place: Place) -> datafusion.Expr:
        column = datafusion.col(f'"{place[0]}"')
        for step in place[1:]:
            column = column[step]
        return column

    def count(self) -> int:
        return int(self._rows.count())

    def total(self, place: Place) -> object:
        [found] = self._rows.aggregate([], [in_datafusion.sum(self._column(place)).alias("total")]).to_pylist()
        return found["total"]

    def values(self, place: Place) -> list[object]:
        return [row["asked"] for row in self._rows.select(self._column(place).alias("asked")).to_pylist()]

    def matching(self, place: Place, comparison: str, value: object) -> int:
        return int(self._rows.filter(COMPARISONS[comparison](self._column(place), datafusion.lit(value))).count())

    def missing(self, place: Place) -> int:
        return int(self._rows.filter(self._column(place).is_null()).count())

    def rows(self) -> pa.Table:
        return self._rows.to_arrow_table()


@dataclass
class InDuckDB:
    """DuckDB over the Arrow data set of delta-rs."""

    path: Path
    version: int

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect().register("asked", DeltaTable(self.path, version=self.version).to_pyarrow_dataset())

    def _one(self, query: str, *parameters: object) -> Any:  # noqa: ANN401
        found = self._connection.execute(query, parameters).fetchone()
        assert found is not None
        return found[0]

    @staticmethod
    def _column(place: Place) -> str:
        return ".".join(f'"{step}"' for step in place)

    def count(self) -> int:
        return int(self._one("SELECT count(*) FROM asked"))

    def total(self, place: Place) -> object:
        return self._one(f"SELECT sum({self._column(place)}) FROM asked")  # noqa: S608

    def values(self, place: Place) -> list[object]:
        query = f"SELECT {self._column(place)} FROM asked"  # noqa: S608
        return [row[0] for row in self._connection.execute(query).fetchall()]

    def matching(self, place: Place, comparison: str, value: object) -> int:
        return int(self._one(f"SELECT count(*) FROM asked WHERE {self._column(place)} {comparison} ?", value))  # noqa: S608

    def missing(self, place: Place) -> int:
        return int(self._one(f"SELECT count(*) FROM asked WHERE {self._column(place)} IS NULL"))  # noqa: S608

    def rows(self) -> pa.Table:
        return self._connection.sql("SELECT * FROM asked").to_arrow_table()
