"""A table whose columns are nested too deeply to be read again: none is made, and one that was made is repaired."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json, merged
from gamelake.delta.log.codec import commit_info, encode_entry, entry_path, protocol_action
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import CommitOutcome
from gamelake.ledger.reconciliation import schema_problems
from gamelake.model.errors import IncompatibleSchemaError
from gamelake.objects.store import Store
from gamelake.recovery.log_repair import LogRepair
from tests.unit.delta.appends import DAY, TABLE, a_file, a_location, tables_in

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


def an_unchecked_entry(folder: Path, rows: pa.Table) -> TableFiles:
    """What an older version wrote into a manifest."""
    schema = Schema.from_arrow(pa.schema([*rows.schema, pa.field(DAY, pa.date32())])).to_json()
    return TableFiles(table=TABLE, partition_by=(DAY,), schema=schema, files=(a_file(folder, rows),))


def make_unreadable(folder: Path, entry: TableFiles) -> None:
    """Create the table as an older version did."""
    metadata = {
        "id": "table", "format": {"provider": "parquet", "options": {}}, "schemaString": entry.schema,
        "partitionColumns": [DAY], "configuration": {}, "createdTime": 0,
    }  # fmt: skip
    content = encode_entry([commit_info(0, "WRITE", {}), protocol_action(1, 2), {"metaData": metadata}])
    assert Store(a_location(folder)).put_new(entry_path(TABLE, 0), content)
    with pytest.raises((DeltaError, ValueError)):
        DeltaTable(str(folder / TABLE))


@pytest.mark.parametrize("schema", [nested(TOO_DEEP).schema, nested_lists(31)], ids=["structs", "lists"])
def test_columns_that_a_log_can_not_give_back_are_refused_before_they_are_in_it(schema: pa.Schema) -> None:
    with pytest.raises(IncompatibleSchemaError, match="deep is nested too deeply"):
        merged(pa.schema([]), schema)
    with pytest.raises(IncompatibleSchemaError, match="no table can have these columns"):
        delta_schema_json(schema)


@pytest.mark.parametrize("schema", [nested(DEEPEST).schema, nested_lists(30)], ids=["structs", "lists"])
def test_the_deepest_columns_that_a_log_gives_back_are_taken(schema: pa.Schema) -> None:
    assert pa.schema(Schema.from_json(delta_schema_json(merged(pa.schema([]), schema)))) == schema


def test_a_stuck_batch_is_committed_after_the_repair_and_no_row_is_lost(tmp_path: Path) -> None:
    entry = an_unchecked_entry(tmp_path, nested(TOO_DEEP))
    make_unreadable(tmp_path, entry)
    store = Store(a_location(tmp_path))
    assert "jobs/repair_log.py" in next(schema_problems(TableLog.read(store, TABLE)))

    planned = LogRepair(store, TABLE).dry_run()
    repaired = LogRepair(store, TABLE).repair(lambda _: None)

    assert planned == repaired
    assert [(each.version, each.without_columns) for each in repaired] == [(1, ("deep",))]
    assert LogRepair(store, TABLE).dry_run() == []
    with tables_in(tmp_path) as tables:
        # Twice, as at the next two starts.
        assert tables.append(entry, BatchTransaction("query-0", 0)) is CommitOutcome.COMMITTED
        assert tables.append(entry, BatchTransaction("query-0", 0)) is CommitOutcome.ALREADY_COMMITTED
    assert list(schema_problems(TableLog.read(store, TABLE))) == []
    assert DeltaTable(str(tmp_path / TABLE)).to_pyarrow_table().select(["number"]).to_pylist() == [{"number": 1}]


def test_a_decided_batch_with_such_columns_makes_a_table_without_them(tmp_path: Path) -> None:
    entry = an_unchecked_entry(tmp_path, nested(TOO_DEEP))

    with tables_in(tmp_path) as tables:
        assert tables.append(entry, BatchTransaction("query-0", 0)) is CommitOutcome.COMMITTED
        assert tables.append(entry, BatchTransaction("query-0", 1)) is CommitOutcome.COMMITTED

    names = [field["name"] for field in json.loads(DeltaTable(str(tmp_path / TABLE)).schema().to_json())["fields"]]
    assert names == ["number", DAY]
