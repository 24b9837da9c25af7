"""Comments of tables and columns are in their logs, where every engine finds them, and never block a writer."""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.delta.columns import delta_schema_json
from gamelake.delta.comments import Comments, commented, describe, uncommented
from gamelake.delta.tables import open_table
from gamelake.objects.store import Location, Store

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64()),
        pa.field("inner", pa.struct([pa.field("b", pa.string())])),
        pa.field("many", pa.list_(pa.field("element", pa.struct([pa.field("c", pa.string())])))),
        pa.field("named", pa.map_(pa.string(), pa.struct([pa.field("d", pa.string())]))),
    ]
)
MEANINGS = {
    "a": "first", "inner": "a message", "inner.b": "in it", "many": "some", "many.c": "in each", "named": "by name",
    "named.d": "in each of these",
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lakehouse with a table without comments."""
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}), configuration={"delta.checkpointInterval": "7"})
    return Store(Location(uri=tmp_path.as_uri()))


def newest(store: Store) -> DeltaTable:
    return open_table(store.location, "t")


def test_a_column_gets_its_comment_at_any_depth() -> None:
    schema = delta_schema_json(SCHEMA)
    assert uncommented(schema) == list(MEANINGS)

    assert uncommented(commented(schema, Comments("", MEANINGS))) == []


def test_a_column_without_a_new_comment_keeps_its_own() -> None:
    schema = commented(delta_schema_json(SCHEMA), Comments("", MEANINGS))

    assert json.loads(commented(schema, Comments("", {"a": "other"})))["fields"][1:] == json.loads(schema)["fields"][1:]


def test_a_commit_of_comments_changes_nothing_else(store: Store) -> None:
    before = newest(store)

    assert describe(store, "t", Comments("A table.", {"a": "a number"}), partial(newest, store))

    after = newest(store)
    assert after.version() == before.version() + 1
    assert after.metadata().description == "A table."
    assert after.schema().fields[0].metadata == {"comment": "a number"}
    assert (after.metadata().id, after.metadata().configuration) == (
        before.metadata().id,
        before.metadata().configuration,
    )
    assert after.to_pyarrow_table().column("a").to_pylist() == [1, 2]


def test_comments_that_have_not_changed_are_not_committed(store: Store) -> None:
    comments = Comments("A table.", {"a": "a number", "gone": "is missing"})
    describe(store, "t", comments, partial(newest, store))

    assert not describe(store, "t", comments, partial(newest, store))
    assert not describe(store, "t", Comments(), partial(newest, store))


def test_a_concurrent_commit_is_not_overwritten(store: Store) -> None:
    stale = newest(store)
    write_deltalake(stale.table_uri, pa.table({"a": [3]}), mode="append")
    handles = iter([stale, newest(store)])

    assert describe(store, "t", Comments("A table."), lambda: next(handles))

    assert sorted(newest(store).to_pyarrow_table().column("a").to_pylist()) == [1, 2, 3]
