"""Small files become good ones, and no row changes, whatever the stream and others do meanwhile."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gamelake.delta.log.codec import entry_path
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import commit_rewrite, maintenance_lease
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance import compaction
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.model.errors import LeaseLostError
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter
from tests.support.player_tables import BRONZE, SILVER, append, append_rows, players_in

ANNA, BEN = "a" * 32, "b" * 32
RULE = CompactionRule(target_bytes=10**6, hot_files=3, today=date(2026, 11, 22))


def of(store: Store, table: str = SILVER.name, *sort_by: str) -> TableCompaction:
    return TableCompaction(store.location, table, RULE, sort_by)


@pytest.mark.parametrize("table", [SILVER, BRONZE], ids=lambda table: table.name)
def test_many_files_become_one_with_the_same_rows(store: Store, tables: DeltaTables, table: object) -> None:
    for batch in range(20):
        append(tables, store, table, batch, [ANNA, BEN] * (batch + 1))  # type: ignore[arg-type]
    before = players_in(store, table)  # type: ignore[arg-type]

    done = of(store, table.name)()  # type: ignore[attr-defined]

    assert (done.files_before, done.files_after, done.partitions) == (20, 1, 1)
    assert done.bytes_after < done.bytes_before
    assert players_in(store, table) == before  # type: ignore[arg-type]
    assert len(open_table(store.location, table.name).file_uris()) == 1  # type: ignore[attr-defined]


def test_a_second_run_finds_nothing_to_do(store: Store, tables: DeltaTables) -> None:
    for batch in range(5):
        append(tables, store, SILVER, batch, [ANNA])
    of(store)()

    done = of(store)()

    assert (done.files_before, done.versions) == (0, ())
    assert open_table(store.location, SILVER.name).version() == 5


def test_readers_of_changes_see_that_no_row_changed(store: Store, tables: DeltaTables) -> None:
    for batch in range(3):
        append(tables, store, SILVER, batch, [ANNA])

    (version,) = of(store)().versions

    actions = [json.loads(line) for line in (store.get(entry_path(SILVER.name, version)) or b"").splitlines()]
    assert {action[kind]["dataChange"] for action in actions for kind in ("add", "remove") if kind in action} == {False}
    assert len(TableLog.read(store, SILVER.name).appended) == 3


def test_rows_lie_by_the_columns_that_questions_filter_by(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [BEN, ANNA])
    append(tables, store, SILVER, 1, [BEN, ANNA, BEN])

    of(store, SILVER.name, "gamer_id", "event_time")()

    [uri] = open_table(store.location, SILVER.name).file_uris()
    assert pq.read_table(uri.removeprefix("file://"))["gamer_id"].to_pylist() == [ANNA, ANNA, BEN, BEN, BEN]


def test_files_from_before_and_after_a_new_column_are_compacted_together(store: Store, tables: DeltaTables) -> None:
    old = pa.table({"gamer_id": [ANNA], "device": [{"os": "ios"}]})
    new = pa.table({"gamer_id": [BEN], "device": [{"os": "android", "memory": 6}], "levels": [[{"number": 1}]]})
    append_rows(tables, store, 0, old)
    append_rows(tables, store, 1, new)
    before = _by_duckdb(store, "SELECT gamer_id, device, levels FROM t ORDER BY 1")

    of(store)()

    assert _by_duckdb(store, "SELECT gamer_id, device, levels FROM t ORDER BY 1") == before
    assert before[0][1] == {"os": "ios", "memory": None}


def test_what_the_stream_appends_meanwhile_stays(
    store: Store, tables: DeltaTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(4):
        append(tables, store, SILVER, batch, [ANNA])
    commit = commit_rewrite

    def after_an_append(*arguments: object) -> int | None:
        append(tables, store, SILVER, 4, [BEN])
        return commit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "commit_rewrite", after_an_append)
    done = of(store)()

    assert done.versions == (5,)
    assert players_in(store, SILVER) == {ANNA: 4, BEN: 1}


def test_rows_that_were_erased_do_not_come_back(store: Store, tables: DeltaTables) -> None:
    for batch in range(4):
        append(tables, store, SILVER, batch, [ANNA, BEN])
    RowEraser(store, SILVER, PlayerFilter(frozenset([ANNA])), "run-1").erase()

    of(store)()

    assert players_in(store, SILVER) == {BEN: 4}


def test_an_entry_that_would_bring_erased_rows_back_is_not_put(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA, BEN])
    RowEraser(store, SILVER, PlayerFilter(frozenset([ANNA])), "run-1").erase()

    with maintenance_lease(store, SILVER.name) as lease:
        assert commit_rewrite(store, SILVER.name, 0, [{"commitInfo": {}}], lease) is None


def test_one_that_stalled_commits_nothing_once_another_has_taken_over(
    store: Store, tables: DeltaTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tables, store, SILVER, 0, [ANNA])

    with maintenance_lease(store, SILVER.name, LeaseTiming(renew=1_000)) as stalled:
        with maintenance_lease(store, SILVER.name, LeaseTiming(renew=0.05, poll=0.05, patience=0.3)):
            pass

        with pytest.raises(LeaseLostError, match="because this one's heartbeat was late"):
            commit_rewrite(store, SILVER.name, 0, [{"commitInfo": {}}], stalled)
        stalls_after_its_check(stalled, monkeypatch)
        with pytest.raises(LeaseLostError, match="has committed nothing"):
            commit_rewrite(store, SILVER.name, 0, [{"commitInfo": {}}], stalled)


def stalls_after_its_check(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a lease as it is when the process checks it, and stalls before it continues."""
    monkeypatch.setattr(lease, "require", lambda: None)


def test_one_that_read_the_table_after_another_has_taken_over_commits_nothing(
    store: Store, tables: DeltaTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder after the next one begins without a fence of its own."""
    append(tables, store, SILVER, 0, [ANNA])

    with maintenance_lease(store, SILVER.name, LeaseTiming(renew=1_000)) as stalled:
        with maintenance_lease(store, SILVER.name, LeaseTiming(renew=0.05, poll=0.05, patience=0.3)):
            version = open_table(store.location, SILVER.name).version()
        stalls_after_its_check(stalled, monkeypatch)

        with maintenance_lease(store, SILVER.name), pytest.raises(LeaseLostError, match="has committed nothing"):
            commit_rewrite(store, SILVER.name, version, [{"commitInfo": {}}], stalled)


def test_appends_never_fail_during_compaction_runs(store: Store, tables: DeltaTables) -> None:
    append(tables, store, SILVER, 0, [ANNA])
    compact = replace(of(store), rule=replace(RULE, hot_files=0))

    with ThreadPoolExecutor(1) as pool:
        runs = pool.submit(lambda: [compact() for _ in range(15)])
        for batch in range(1, 120):
            append(tables, store, SILVER, batch, [ANNA])
        runs.result()

    assert players_in(store, SILVER) == {ANNA: 120}
    assert len(TableLog.read(store, SILVER.name).appended) == 120


def _by_duckdb(store: Store, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("t", DeltaTable(store.location.child(SILVER.name)).to_pyarrow_dataset())
        return connection.sql(sql).fetchall()
