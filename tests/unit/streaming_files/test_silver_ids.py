"""Events of silver are read once for all tasks of a worker, and dropped when silver no longer has their file."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.contract.games import load_games
from gamelake.delta.log.codec import FileEntry
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events
from gamelake.layers.routing import Router
from gamelake.model.errors import StoreError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.streaming.dedup.worker_memory import worker_memory
from gamelake.streaming.files import silver_ids
from gamelake.streaming.files.silver_ids import SilverIds

GAMES = load_games(Path("contracts/games.yaml"))
GAME = GAMES.games[0]
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
IDENTITIES = Identities("seed")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of files that were read."""
    paths: list[str] = []
    rows = SilverIds.rows

    def noted(self: SilverIds, file: FileEntry) -> Iterator[pa.RecordBatch]:
        paths.append(file.path)
        return rows(self, file)

    monkeypatch.setattr(SilverIds, "rows", noted)
    return paths


def land(store: Store, *ids: str, at: datetime = NOON, mode: str = "append") -> int:
    """Give silver one file with events. Return the version."""
    rows = pa.table(
        {
            "game_name": [GAME.match[0]] * len(ids),
            "event_id": list(ids),
            "event_time": pa.array([at] * len(ids), pa.timestamp("us", "UTC")),
        }
    )
    table = store.location.child(SILVER_EVENTS)
    write_deltalake(table, rows, mode=mode)  # type: ignore[call-overload] # append or overwrite
    return DeltaTable(table).version()


def a_task(store: Store, version: int | None, in_memory: int = 1_000) -> SilverIds:
    memory = worker_memory(store, in_memory, {IDENTITIES.seed})
    return SilverIds(store, version, (), Router(GAMES, frozenset()), IDENTITIES, memory)


def has(task: SilverIds, *ids: str, at: datetime = NOON) -> list[bool]:
    codes = np.zeros(len(ids), np.int64)
    high, rest = IDENTITIES.of([GAME.table], codes, pa.array(ids))
    moment = int(at.timestamp() * 1_000_000)
    found = task.have(Events.of(high, rest, np.full(len(ids), ANY_TIME, np.int64)), moment, moment)
    return [bool(each) for each in found]


def test_an_event_is_found_by_game_and_id_only_in_files_of_its_time(store: Store, read: list[str]) -> None:
    land(store, "a")
    version = land(store, "b", at=NOON + timedelta(days=1))

    assert has(a_task(store, version), "a", "b", "c") == [True, False, False]
    assert len(read) == 1


def test_an_event_is_found_in_a_file_whose_bounds_another_writer_has_cut_to_milliseconds(store: Store) -> None:
    at = NOON + timedelta(microseconds=999_456)
    # delta-rs writes bounds as Spark does.
    version = land(store, "a", at=at)

    assert has(a_task(store, version), "a", at=at) == [True]
    assert has(a_task(store, version), "a", at=at + timedelta(milliseconds=1)) == [False]


def test_without_the_table_nothing_is_known(store: Store) -> None:
    assert has(a_task(store, None), "a") == [False]


def test_the_next_task_of_a_worker_reads_only_files_that_are_new(store: Store, read: list[str]) -> None:
    first = land(store, "a", "b")
    assert has(a_task(store, first), "a") == [True]
    second = land(store, "c")

    assert has(a_task(store, second), "a", "b", "c", "d") == [True, True, True, False]
    assert len(read) == 2


def test_events_that_were_deleted_from_silver_are_not_found_any_more(store: Store) -> None:
    assert has(a_task(store, land(store, "a", "b")), "a") == [True]

    restored = land(store, "b", mode="overwrite")

    assert has(a_task(store, restored), "a", "b") == [False, True]


def test_files_beyond_the_memory_limit_are_also_read_once(store: Store, read: list[str]) -> None:
    land(store, "a", "b")
    version = land(store, "c", "d", "e")

    for _ in range(2):
        assert has(a_task(store, version, in_memory=3), "a", "c", "x") == [True, True, False]
    assert len(read) == 2


def test_a_file_too_large_to_sort_at_once_is_searched_completely(
    store: Store, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(silver_ids, "_ROWS_AT_ONCE", 2)
    monkeypatch.setattr(silver_ids, "_RUN", 3)
    ids = list("abcdefghijk")
    version = land(store, *ids)

    assert has(a_task(store, version, in_memory=5), "x", *ids, "y") == [False, *([True] * len(ids)), False]
    assert len(read) == 1


def test_a_missing_file_is_reported(store: Store, tmp_path: Path) -> None:
    version = land(store, "a")
    for path in (tmp_path / SILVER_EVENTS).glob("*.parquet"):
        path.unlink()

    with pytest.raises(StoreError, match="is missing"):
        has(a_task(store, version), "a")
