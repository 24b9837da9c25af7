"""Bounds and partition values that delta-rs reads as other texts are corrected, and no row changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gamelake.recovery.bounds_repair import BoundsRepair
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import write_rows
from gamelake.storage.delta_log import decode_entry, entry_path
from gamelake.storage.manifests import TableFiles
from gamelake.storage.reconciliation import bounds_problems
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import DeltaTables, delta_schema_json, open_table
from tests.player_tables import store_in

TABLE = "silver/archery_events"
NAMES = ["𠮷野", "😀", "m", "𠮷" * 40]
COLUMNS = pa.schema({"gamer_id": pa.string(), "event_date": pa.date32(), "region": pa.string()})


def append(store: Store, batch: int, name: str) -> None:
    file = write_rows(store, TABLE, pa.table({"gamer_id": [name]}), {"event_date": "2026-01-01", "region": name})
    partition_by = ("event_date", "region")
    entry = TableFiles(table=TABLE, partition_by=partition_by, schema=delta_schema_json(COLUMNS), files=(file,))
    with DeltaTables(store.location) as tables:
        tables.append(entry, BatchTransaction("query-0", batch))


def escape(store: Store, version: int) -> None:
    """Write an entry as earlier versions did."""
    actions = decode_entry(store.get(entry_path(TABLE, version)) or b"")
    store.put(entry_path(TABLE, version), "\n".join(map(json.dumps, actions)).encode())


def found(store: Store, column: str) -> list[int]:
    """How many rows a filter for each name finds."""
    data = open_table(store.location, TABLE).to_pyarrow_dataset()
    return [data.to_table(filter=pc.field(column) == name).num_rows for name in NAMES]


@pytest.fixture(params=[False, True], ids=["log entries", "log checkpoint"])
def damaged(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    store = store_in(tmp_path)
    for batch, name in enumerate(NAMES):
        append(store, batch, name)
        escape(store, batch)
    if request.param:
        open_table(store.location, TABLE).create_checkpoint()
    return store


def test_rows_that_filters_skipped_are_found_again(damaged: Store) -> None:
    before = open_table(damaged.location, TABLE).to_pyarrow_table(columns=["gamer_id"])
    assert (found(damaged, "gamer_id"), found(damaged, "region")) == ([0, 1, 1, 0], [0, 1, 1, 0])

    [repaired] = BoundsRepair(damaged, TABLE).repair()

    assert (repaired.version, repaired.files, repaired.rows) == (4, 2, 2)
    assert (found(damaged, "gamer_id"), found(damaged, "region")) == ([1] * 4, [1] * 4)
    after = open_table(damaged.location, TABLE).to_pyarrow_table(columns=["gamer_id"])
    assert sorted(after["gamer_id"].to_pylist()) == sorted(before["gamer_id"].to_pylist())
    assert BoundsRepair(damaged, TABLE).repair() == []


def test_a_dry_run_and_the_reconciliation_count_the_files(damaged: Store) -> None:
    assert [each.files for each in BoundsRepair(damaged, TABLE).dry_run()] == [2]
    [problem] = bounds_problems(damaged, TABLE, TableLog.read(damaged, TABLE))
    assert problem.startswith("2 files have bounds")

    BoundsRepair(damaged, TABLE).repair()

    assert list(bounds_problems(damaged, TABLE, TableLog.read(damaged, TABLE))) == []


def test_files_that_are_corrected_count_as_added_once(damaged: Store) -> None:
    before = TableLog.read(damaged, TABLE)

    BoundsRepair(damaged, TABLE).repair()

    after = TableLog.read(damaged, TABLE)
    assert (after.appended, after.live_rows) == (before.appended, before.live_rows)


def commit_meanwhile(monkeypatch: pytest.MonkeyPatch, store: Store, commit: Callable[[], None]) -> None:
    """Commit something else once, just before the repair does."""
    put_new, todo = Store.put_new, [commit]

    def later(self: Store, path: str, content: bytes) -> bool:
        if b'"REPAIR"' in content and todo:
            todo.pop()()
        return put_new(self, path, content)

    monkeypatch.setattr(Store, "put_new", later)


def test_an_append_meanwhile_is_kept(damaged: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_meanwhile(monkeypatch, damaged, lambda: append(damaged, 4, NAMES[0]))

    [repaired] = BoundsRepair(damaged, TABLE).repair()

    assert (repaired.version, found(damaged, "gamer_id")) == (5, [2, 1, 1, 1])


def test_a_file_that_is_removed_meanwhile_does_not_come_back(damaged: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove() -> None:
        [add] = [action["add"] for action in decode_entry(damaged.get(entry_path(TABLE, 0)) or b"") if "add" in action]
        gone = {**add, "deletionTimestamp": 1, "dataChange": True}
        damaged.put(entry_path(TABLE, 4), json.dumps({"remove": gone}).encode())

    commit_meanwhile(monkeypatch, damaged, remove)

    [repaired] = BoundsRepair(damaged, TABLE).repair()

    assert (repaired.version, repaired.files) == (5, 1)
    assert found(damaged, "gamer_id") == [0, 1, 1, 1]
