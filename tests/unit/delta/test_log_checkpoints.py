"""A log checkpoint that is written from a copy of the log's end is as if it was written from the table."""

from collections import Counter
from pathlib import Path

import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log import checkpoints as log_checkpoints
from gamelake.delta.log.checkpoints import checkpoint_from_copy, files_of_log_checkpoint
from gamelake.delta.log.codec import LOG_FOLDER, entry_path, live_files
from gamelake.delta.tables import checkpoint_log, open_table
from gamelake.objects.store import Store
from tests.unit.delta.appends import TABLE, a_location, an_append, some_rows, tables_in

_LAST = f"{TABLE}/{LOG_FOLDER}/_last_checkpoint"


class ObjectStore(Store):
    """A folder that counts as an object store, and what is read of it by path."""

    is_local = False

    def __init__(self, folder: Path) -> None:
        super().__init__(a_location(folder))
        self.reads = Counter[str]()

    def get(self, path: str) -> bytes | None:
        """Read, and count it."""
        self.reads[path] += 1
        return super().get(path)


def _append(folder: Path, first: int, last: int) -> None:
    with tables_in(folder) as tables:
        for version in range(first, last + 1):
            tables.append(an_append(folder, some_rows(3 * version)), BatchTransaction("query-0", version))


def _checkpoints(folder: Path) -> list[int]:
    log = folder / TABLE / LOG_FOLDER
    return sorted(int(each.name.partition(".")[0]) for each in log.glob("*.checkpoint.parquet"))


def _delete_entries(store: Store, first: int, last: int) -> None:
    for version in range(first, last + 1):
        store.delete(entry_path(TABLE, version))


def test_readers_need_no_entry_before_a_checkpoint(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    _append(tmp_path, 0, 5)
    before = open_table(store.location, TABLE)

    assert checkpoint_from_copy(store, TABLE, 5) == 6
    _append(tmp_path, 6, 9)
    assert checkpoint_from_copy(store, TABLE, 9) == 10
    _delete_entries(store, 0, 9)

    after = open_table(store.location, TABLE)
    assert _checkpoints(tmp_path) == [5, 9]
    assert after.version() == 9
    assert len(live_files(after)) == 10
    assert set(live_files(before)) < set(live_files(after))
    assert after.transaction_version("query-0") == 9
    assert (after.metadata().id, after.schema()) == (before.metadata().id, before.schema())
    assert sorted(after.to_pyarrow_table()["number"].to_pylist()) == list(range(30))
    assert files_of_log_checkpoint(store, TABLE) == 10


def test_each_entry_since_the_last_checkpoint_is_read_once_and_none_before_it(tmp_path: Path) -> None:
    _append(tmp_path, 0, 5)
    assert checkpoint_from_copy(ObjectStore(tmp_path), TABLE, 5) == 6
    _append(tmp_path, 6, 9)
    store = ObjectStore(tmp_path)

    assert checkpoint_from_copy(store, TABLE, 9) == 10

    entries = [entry_path(TABLE, version) for version in range(11)]
    # The eleventh is asked for, as other writers may have committed it.
    assert [store.reads[path] for path in entries] == [0] * 6 + [1] * 5


def test_a_checkpoint_is_of_the_newest_version_also_if_another_one_asked_for_it(tmp_path: Path) -> None:
    _append(tmp_path, 0, 9)

    assert checkpoint_from_copy(ObjectStore(tmp_path), TABLE, 5) == 10

    assert _checkpoints(tmp_path) == [9]


@pytest.mark.parametrize("last", [b"", b"{", b"[]", b'{"version":null}', None])
def test_a_damaged_or_missing_note_of_the_last_checkpoint_costs_no_checkpoint(
    tmp_path: Path, last: bytes | None
) -> None:
    store = ObjectStore(tmp_path)
    _append(tmp_path, 0, 5)
    checkpoint_log(store, TABLE, 5)
    _append(tmp_path, 6, 9)
    _delete_entries(store, 0, 5)
    store.delete(_LAST) if last is None else store.put(_LAST, last)

    assert checkpoint_from_copy(store, TABLE, 9) is None
    assert checkpoint_log(store, TABLE, 9) == 10

    assert _checkpoints(tmp_path) == [5, 9]


@pytest.mark.parametrize("note", [b'{"version":4,"size":9,"parts":2}', b'{"version":4,"size":9}'])
def test_a_checkpoint_of_several_parts_or_of_another_name_is_read_by_the_library(tmp_path: Path, note: bytes) -> None:
    store = ObjectStore(tmp_path)
    _append(tmp_path, 0, 5)
    store.put(_LAST, note)

    assert checkpoint_from_copy(store, TABLE, 5) is None

    assert _checkpoints(tmp_path) == []


@pytest.mark.parametrize(("kept", "checkpoints"), [(0, [0, 1, 2, 3, 4, 5]), (5, [4, 5]), (6, [5])])
def test_a_long_end_of_a_log_is_copied_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, checkpoints: list[int]
) -> None:
    store = ObjectStore(tmp_path)
    _append(tmp_path, 0, 5)
    sizes = [len(store.get(entry_path(TABLE, version)) or b"") for version in range(6)]
    monkeypatch.setattr(log_checkpoints, "_MOST_BYTES", sum(sizes[:kept]))

    assert checkpoint_from_copy(store, TABLE, 5) == 6

    assert _checkpoints(tmp_path) == checkpoints
    assert len(live_files(open_table(store.location, TABLE))) == 6


def test_a_version_that_has_a_checkpoint_gets_no_other(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    _append(tmp_path, 0, 5)
    assert checkpoint_log(store, TABLE, 5) == 6
    store.reads.clear()

    assert checkpoint_log(store, TABLE, 5) == 6

    assert set(store.reads) == {_LAST}


def test_a_copy_is_made_of_an_object_store_s_log_alone(tmp_path: Path) -> None:
    far, local = ObjectStore(tmp_path), ObjectStore(tmp_path)
    local.is_local = True
    _append(tmp_path, 0, 5)

    assert checkpoint_log(far, TABLE, 5) == checkpoint_log(local, TABLE, 5) == 6

    assert far.reads[entry_path(TABLE, 0)] == 1
    assert local.reads[entry_path(TABLE, 0)] == 0
