"""The values of a table as each program reads them, in one form in which any difference shows."""

from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.engines import InDataFusion, InDuckDB, InPolars, InSpark

# A row's values by column; see `in_one_form`.
Values: TypeAlias = dict[str, Any]


def readers(spark: Callable[[], SparkSession]) -> Mapping[str, Callable[[Path], pa.Table]]:
    """What reads all rows of a table's newest version as Arrow, by the name of the program."""
    return {
        "delta-rs": lambda path: DeltaTable(path).to_pyarrow_table(),
        "DuckDB": lambda path: InDuckDB(path, _newest(path)).rows(),
        "Polars": lambda path: InPolars(path, _newest(path)).rows(),
        "DataFusion": lambda path: InDataFusion(path, _newest(path)).rows(),
        "Spark": lambda path: InSpark(spark(), path, _newest(path)).rows(),
    }


def _newest(path: Path) -> int:
    return DeltaTable(path).version()


def in_one_form(rows: pa.Table) -> list[Values]:
    """Rows with a time as microseconds since 1970, a float as its exact text (-0.0 is not 0.0, NaN is NaN).

    A map is a sorted tuple of its entries, whether a program has it as a map or as a list of key and value.
    """
    return [{name: _plain(value) for name, value in row.items()} for row in _without_times(rows).to_pylist()]


def _without_times(rows: pa.Table) -> pa.Table:
    # A datetime holds the years 1 to 9999 only.
    return rows.cast(pa.schema([field.with_type(_as_numbers(field.type)) for field in rows.schema]))


def _as_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers in place of times, also in structs."""
    if pa.types.is_timestamp(kind):
        assert kind.unit == "us", kind
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_numbers(field.type)) for field in kind])
    return kind


def _plain(value: Any) -> Any:  # noqa: ANN401 # as pyarrow gives it
    if isinstance(value, dict):
        plain = {name: _plain(inner) for name, inner in value.items()}
        return tuple(plain.values()) if list(plain) == ["key", "value"] else plain
    if isinstance(value, list | tuple):
        items = tuple(_plain(each) for each in value)
        are_entries = isinstance(value, list) and all(isinstance(each, tuple) for each in items)
        return tuple(sorted(items)) if are_entries else items
    if isinstance(value, float):
        return value.hex()
    return value.isoformat() if isinstance(value, date) else value


unordered = partial(sorted, key=repr)
