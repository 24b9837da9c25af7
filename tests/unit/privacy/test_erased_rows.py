"""Rows of people leave the tables, and nothing else does, whatever the stream does meanwhile."""

import itertools
import multiprocessing
import sys
import threading
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from gamelake.delta.log.codec import entry_path
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.model.errors import TransientError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.store import Store
from gamelake.privacy import row_eraser
from gamelake.privacy.lake_erasure import plan_purge
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, PlayerTable, count_rows, player_tables
from tests.support.player_tables import BRONZE, SILVER, append, players_in, store_in

ANNA, BEN = "a" * 32, "b" * 32
JUST_ANNA = PlayerFilter(frozenset([ANNA]))


def erase(store: Store, table: PlayerTable = SILVER, people: PlayerFilter = JUST_ANNA, run: str = "run-1") -> None:
    RowEraser(store, table, people, run).erase()


@pytest.mark.parametrize("table", [SILVER, BRONZE], ids=lambda table: table.name)
def test_the_rows_of_one_player_go_and_all_others_stay(store: Store, tables: DeltaTables, table: PlayerTable) -> None:
    append(tables, store, table, 0, [ANNA, BEN, ANNA])
    append(tables, store, table, 1, [BEN])
    append(tables, store, table, 2, [ANNA])

    found = count_rows(store, table, JUST_ANNA)
    erase(store, table)

    assert (found.rows, found.files) == (3, 2)
    assert players_in(store, table) == Counter({BEN: 2})
    log = TableLog.read(store, table.name)
    assert [(each.run, each.rows, each.files) for each in log.erasures] == [("run-1", 3, 2)]
    assert len(log.appended) == 3


@pytest.mark.parametrize("layer", ["bronze/events", "dead_letters/events", "quarantine/events"])
def test_a_record_is_the_players_by_what_it_holds_whatever_its_key_is(store: Store, layer: str) -> None:
    records = [
        b'{"gamer_id": "' + ANNA.encode() + b'"}',
        b"\n " + BEN.encode(),
        b"",
        None,
        ANNA.encode()[:31],
        b"x" + ANNA.encode(),
    ]
    rows = pa.table(
        {
            "key": pa.array([None, None, None, None, BEN.encode(), b"device-7"], pa.binary()),
            "value": pa.array(records, pa.binary()),
        }
    )
    write_deltalake(store.location.child(layer), rows)

    (table,) = player_tables(store)
    found = count_rows(store, table, JUST_ANNA)
    erase(store, table)

    assert found.rows == 2
    assert open_table(store.location, layer).to_pyarrow_table()["value"].to_pylist() == records[1:5]


def test_a_table_without_the_player_gets_no_commit(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [BEN])

    erase(store)
    erase(store)

    assert open_table(store.location, SILVER.name).version() == 0


def test_the_log_says_that_rows_went_and_not_whose(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])

    erase(store)

    entry = store.get(entry_path(SILVER.name, 1)) or b""
    assert b'"operation":"DELETE"' in entry
    assert ANNA.encode() not in entry


def test_the_tables_features_stay_those_that_all_engines_know(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])

    erase(store)

    handle = open_table(store.location, SILVER.name)
    assert (handle.protocol().min_reader_version, handle.protocol().min_writer_version) == (1, 2)
    assert handle.metadata().partition_columns == ["event_date"]
    assert [(player, str(day)) for player, day in rows_by_duckdb(handle)] == [(BEN, "2026-01-01")]


def rows_by_duckdb(handle: DeltaTable) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        database.register("rows", handle.to_pyarrow_table())
        return database.execute("SELECT gamer_id, event_date FROM rows").fetchall()


def test_the_bounds_of_times_stay_exact(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN, BEN])

    erase(store)

    handle = open_table(store.location, SILVER.name)
    latest = pa.table(handle.get_add_actions(flatten=True)).to_pylist()[0]["max.event_time"]
    assert latest.microsecond == 2


def test_the_stream_appends_on_while_rows_go(tmp_path: Path, store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])
    # A process, as the stream is one: two threads of Python would wait for each other.
    stream = multiprocessing.get_context("spawn").Process(target=append_until_two_erasures, args=(tmp_path,))
    stream.start()
    while stream.is_alive():
        erase(store)
    stream.join()
    assert stream.exitcode == 0, "fewer than two erasures were committed while the stream ran"
    erase(store, run="last")

    log = TableLog.read(store, SILVER.name)
    batches = len(log.appended)
    assert batches > 100
    assert log.erased_rows == batches
    assert players_in(store, SILVER) == Counter({BEN: batches})


def append_until_two_erasures(folder: Path) -> None:
    """Append 100 batches, and more until the table has two erasures; exits with 1 if it does not get them."""
    store = store_in(folder)
    trigger = threading.Event()
    with DeltaTables(store.location) as tables:
        for number in range(1, 5_000):
            append(tables, store, SILVER, number, [ANNA, BEN])
            if number >= 100 and number % 20 == 0 and len(TableLog.read(store, SILVER.name).erasures) >= 2:
                return
            # The trigger's interval: a commit takes longer to read than to append.
            trigger.wait(0.01)
    sys.exit(1)


def test_an_erasure_gives_up_while_rows_of_the_player_arrive_after_each_of_its_commits(
    store: Store, tables: DeltaTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_eraser, "_ATTEMPTS", 10)
    append(tables, store, SILVER, 0, [ANNA, BEN])
    batches = itertools.count(1)

    class PlayedOn(Failpoints):
        """The player continues playing."""

        def reach(self, point: Failpoint) -> None:
            """Append after each commit of the erasure."""
            if point is Failpoint.AFTER_ERASED_TABLE:
                append(tables, store, SILVER, next(batches), [ANNA])

    with pytest.raises(TransientError, match="new ones arrived after 10 commits"):
        RowEraser(store, SILVER, JUST_ANNA, "run-1", PlayedOn()).erase()


class RacingStore(Store):
    """Before the first erasure's entry is put, another writer does something."""

    meanwhile = staticmethod(lambda: None)

    def put_new(self, path: str, content: bytes) -> bool:
        """Let the other one be first."""
        if b'"DELETE"' in content:
            other, self.meanwhile = self.meanwhile, lambda: None
            other()
        return super().put_new(path, content)


def test_an_erasure_that_another_delete_overtakes_begins_again(
    tmp_path: Path, store: Store, tables: DeltaTables
) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN, "carl"])
    racing = RacingStore(store.location)
    # Another engine knows nothing of leases.
    racing.meanwhile = lambda: _delete_by_delta_rs(tmp_path / SILVER.name, BEN)

    erase(racing)

    assert players_in(store, SILVER) == Counter({"carl": 1})
    log = TableLog.read(store, SILVER.name)
    assert [(each.run, each.rows) for each in log.erasures] == [("run-1", 1)]
    named = set(log.live) | set(log.removed)
    there = {str(path.relative_to(tmp_path / SILVER.name)) for path in tmp_path.rglob("*.parquet")}
    assert there == named, "files of the attempt that failed are still there"


def _delete_by_delta_rs(table: Path, player: str) -> None:
    DeltaTable(table).delete(f"gamer_id = '{player}'")


def test_an_append_that_is_first_neither_stops_an_erasure_nor_escapes_it(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])
    racing = RacingStore(store.location)
    racing.meanwhile = lambda: append(tables, store, SILVER, 1, [ANNA, BEN])

    erase(racing)

    assert players_in(store, SILVER) == Counter({BEN: 2})


def test_a_table_that_delta_rs_has_written_loses_its_rows_too(store: Store) -> None:
    place = store.location.child("gold/kart_rumble_player_agg")
    day = [date(2026, 1, 1), date(2026, 1, 1), None]
    rows = pa.table({"gamer_id": [ANNA, BEN, ANNA], "platform": ["a/b c", "a/b c", None], "event_date": day})
    write_deltalake(place, rows)
    write_deltalake(f"{place}_by_day", rows, partition_by=["event_date", "platform"])

    for table in player_tables(store):
        erase(store, table)

    for written in (place, f"{place}_by_day"):
        left = DeltaTable(written).to_pyarrow_table().to_pylist()
        assert left == [{"gamer_id": BEN, "platform": "a/b c", "event_date": date(2026, 1, 1)}]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())])
def test_a_player_is_known_in_whatever_a_file_keeps_names_as(kind: pa.DataType) -> None:
    names = pa.chunked_array([pa.array([BEN, None, ANNA]).cast(kind)])

    assert JUST_ANNA.rows_in(names).to_pylist() == [False, False, True]


def test_only_tables_with_players_are_read(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [BEN])
    append(tables, store, BRONZE, 0, [BEN])
    append(tables, store, PlayerTable("silver/without_player", "level"), 0, [BEN])

    assert player_tables(store) == [BRONZE, SILVER]


def test_a_purge_takes_every_file_that_still_has_the_player_and_no_other(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])
    append(tables, store, SILVER, 1, [BEN])
    erase(store, people=PlayerFilter(frozenset([BEN])), run="before")
    append(tables, store, SILVER, 2, [ANNA, "carl"])
    erase(store)

    plan = plan_purge(store, "run-1", [SILVER], JUST_ANNA, timedelta(seconds=60))

    (planned,) = plan.tables
    # The first file, which the run before left behind; what that run had put in its place; and the third one.
    assert len(planned.paths) == 3
    assert set(planned.paths) <= set(TableLog.read(store, SILVER.name).removed)


def test_an_old_version_whose_files_were_purged_can_neither_be_read_nor_restored(
    store: Store, tables: DeltaTables
) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])
    erase(store)
    for planned in plan_purge(store, "run-1", [SILVER], JUST_ANNA, timedelta(0)).tables:
        for path in planned.paths:
            store.delete(f"{planned.table}/{path}")

    old = DeltaTable(store.location.child(SILVER.name), version=0)
    with pytest.raises(FileNotFoundError):
        old.to_pyarrow_table()
    with pytest.raises(DeltaError, match="part-"):
        open_table(store.location, SILVER.name).restore(0)

    assert players_in(store, SILVER) == Counter({BEN: 1})
