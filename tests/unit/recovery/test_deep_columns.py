"""Columns that are nested too deeply to be read again never reach the log of a table."""

import pyarrow as pa
import pytest
from deltalake import Schema

from gamelake.delta.columns import delta_schema_json, merged
from gamelake.model.errors import IncompatibleSchemaError

DEEPEST, TOO_DEEP = 40, 41


def nested(levels: int) -> pa.Table:
    value: object = {"number": 1}
    for _ in range(levels):
        value = {"number": 1, "next": value}
    return pa.table({"number": [1], "deep": [value]})


def nested_lists(levels: int) -> pa.Schema:
    found = pa.struct([pa.field("number", pa.int64())])
    for _ in range(levels):
        found = pa.struct([pa.field("next", pa.list_(pa.field("element", found)))])
    return pa.schema([pa.field("deep", found)])


@pytest.mark.parametrize("schema", [nested(TOO_DEEP).schema, nested_lists(31)], ids=["structs", "lists"])
def test_columns_that_a_log_can_not_give_back_are_refused_before_they_are_in_it(schema: pa.Schema) -> None:
    with pytest.raises(IncompatibleSchemaError, match="deep is nested too deeply"):
        merged(pa.schema([]), schema)
    with pytest.raises(IncompatibleSchemaError, match="no table can have these columns"):
        delta_schema_json(schema)


@pytest.mark.parametrize("schema", [nested(DEEPEST).schema, nested_lists(30)], ids=["structs", "lists"])
def test_the_deepest_columns_that_a_log_gives_back_are_taken(schema: pa.Schema) -> None:
    assert pa.schema(Schema.from_json(delta_schema_json(merged(pa.schema([]), schema)))) == schema
