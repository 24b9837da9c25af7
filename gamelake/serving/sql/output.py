"""Formats an answer as text: for people, for a spreadsheet or for a program."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

import pyarrow as pa
from pyarrow import csv

from gamelake.scans.far_times import python_values


class OutputFormat(StrEnum):
    """The format of an answer."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSON_LINES = "jsonl"


def written(answer: pa.Table, form: OutputFormat) -> str:
    """Format a result as text.

    Args:
        answer: a table with any columns.
        form: the format.

    Returns:
        The rows in the table's order, each on a line of its own, with a newline at the end of each line. JSON is one
        list, `[]` without rows; a result without rows in JSON lines is empty.
    """
    return _WRITERS[form](answer)


def _as_table(answer: pa.Table) -> str:
    cells = [[_cell(value) for value in python_values(column)] for column in answer.columns]
    widths = [max(map(len, [name, *column])) for name, column in zip(answer.column_names, cells, strict=True)]
    numeric = [pa.types.is_integer(field.type) or _is_fraction(field.type) for field in answer.schema]
    lines = [answer.column_names, ["-" * width for width in widths], *map(list, zip(*cells, strict=True))]
    rows = ("  ".join(_padded(*each) for each in zip(line, widths, numeric, strict=True)).rstrip() for line in lines)
    return "".join(f"{line}\n" for line in (*rows, f"({len(answer):,} rows)"))


def _is_fraction(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _padded(text: str, width: int, is_numeric: bool) -> str:  # a property of the column
    return text.rjust(width) if is_numeric else text.ljust(width)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _as_csv(answer: pa.Table) -> str:
    target = io.BytesIO()
    csv.write_csv(answer, target)
    return target.getvalue().decode()


def _as_json(answer: pa.Table) -> str:
    return "[" + ",\n ".join(_objects(answer)) + "]\n"


def _as_json_lines(answer: pa.Table) -> str:
    return "".join(f"{line}\n" for line in _objects(answer))


def _objects(answer: pa.Table) -> Iterator[str]:
    for row in zip(*map(python_values, answer.columns), strict=True):
        yield json.dumps(dict(zip(answer.column_names, row, strict=True)), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else str(value)


_WRITERS: Mapping[OutputFormat, Callable[[pa.Table], str]] = {
    OutputFormat.TABLE: _as_table,
    OutputFormat.CSV: _as_csv,
    OutputFormat.JSON: _as_json,
    OutputFormat.JSON_LINES: _as_json_lines,
}
