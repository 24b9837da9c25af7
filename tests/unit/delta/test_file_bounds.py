"""The bounds of a file contain each of its values, also where other writers have written the statistics."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.file_bounds import bounds_of
from gamelake.delta.log.codec import add_action, commit_info, encode_entry, entry_path, protocol_action
from gamelake.objects.store import Location, Store
from tests.unit.properties import examples

TABLE = "silver/times"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = pa.schema([("at", pa.timestamp("us", "UTC")), ("number", pa.int64()), ("name", pa.string())])
# The years 1 to 9999.
MICROSECONDS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)


def cut_to_milliseconds(file: DataFile) -> DataFile:
    """The file with the statistics that Spark writes: fractions of a millisecond are left out."""
    statistics = json.loads(file.statistics)
    for side in ("minValues", "maxValues"):
        if "at" in statistics[side]:
            moment = datetime.fromisoformat(statistics[side]["at"])
            statistics[side]["at"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return DataFile(
        path=file.path, size=file.size, rows=file.rows, partition=file.partition, statistics=json.dumps(statistics)
    )


def open_with(store: Store, files: list[DataFile], schema: pa.Schema = COLUMNS) -> DeltaTable:
    metadata = {
        "id": "0",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": delta_schema_json(schema),
        "partitionColumns": [],
        "configuration": {},
    }
    actions = [commit_info(0, "WRITE", {}), protocol_action(1, 2), {"metaData": metadata}]
    store.put(entry_path(TABLE, 0), encode_entry([*actions, *(add_action(file, 0) for file in files)]))
    return DeltaTable(store.location.child(TABLE))


def rows_of(times: list[int]) -> pa.Table:
    columns = [pa.array(times, pa.int64()).cast(COLUMNS.field("at").type), pa.array(times, pa.int64())]
    return pa.table([*columns, pa.array([str(each) for each in times])], schema=COLUMNS)


@examples(40)
@given(times=st.lists(MICROSECONDS, min_size=1, max_size=4), is_cut=st.booleans())
def test_bounds_contain_each_time_of_a_file_and_less_than_a_millisecond_more(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], is_cut: bool
) -> None:
    store = Store(Location(uri=tmp_path_factory.mktemp("lake").as_uri()))
    file = write_rows(store, TABLE, rows_of(times), {})
    handle = open_with(store, [cut_to_milliseconds(file) if is_cut else file])

    actions = pa.table(handle.get_add_actions(flatten=False))
    least, greatest = (bounds.cast(pa.int64()).to_pylist()[0] for bounds in bounds_of(actions, "at"))

    assert min(times) - 1_000 < least <= min(times)
    assert max(times) <= greatest < max(times) + 1_000
    least, greatest = (bounds.to_pylist() for bounds in bounds_of(actions, "number"))
    assert (least, greatest) == ([min(times)], [max(times)])


def test_a_column_without_statistics_has_no_bounds(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store(Location(uri=tmp_path_factory.mktemp("lake").as_uri()))
    known = write_rows(store, TABLE, rows_of([1, 2]), {})
    unknown = DataFile(path="other.parquet", size=1, rows=1, partition={}, statistics='{"numRecords":1}')
    actions = pa.table(open_with(store, [known, unknown]).get_add_actions(flatten=False))

    least, greatest = (bounds.to_pylist() for bounds in bounds_of(actions, "at"))

    assert sorted(least, key=str) == [EPOCH + timedelta(microseconds=1), None]
    assert sorted(greatest, key=str) == [EPOCH + timedelta(microseconds=999), None]
    assert [bounds.to_pylist() for bounds in bounds_of(actions, "missing")] == [[None, None], [None, None]]
