"""A result as text: every row is a line, and no rows are an empty result of the format."""

import json

import pyarrow as pa
import pytest

from gamelake.serving.sql.output import OutputFormat, written

ROWS = pa.table({"game": ["a", "b"], "events": [1, 20]})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (OutputFormat.TABLE, "game  events\n----  ------\na          1\nb         20\n(2 rows)\n"),
        (OutputFormat.CSV, '"game","events"\n"a",1\n"b",20\n'),
        (OutputFormat.JSON, '[{"game": "a", "events": 1},\n {"game": "b", "events": 20}]\n'),
        (OutputFormat.JSON_LINES, '{"game": "a", "events": 1}\n{"game": "b", "events": 20}\n'),
    ],
)
def test_each_row_is_a_line(form: OutputFormat, text: str) -> None:
    assert written(ROWS, form) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (OutputFormat.TABLE, "game  events\n----  ------\n(0 rows)\n"),
        (OutputFormat.CSV, '"game","events"\n'),
        (OutputFormat.JSON, "[]\n"),
        (OutputFormat.JSON_LINES, ""),
    ],
)
def test_without_rows_the_result_is_empty_in_its_format(form: OutputFormat, text: str) -> None:
    assert written(ROWS.slice(0, 0), form) == text


def test_json_is_one_document() -> None:
    assert json.loads(written(ROWS, OutputFormat.JSON)) == ROWS.to_pylist()
