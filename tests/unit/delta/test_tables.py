"""Delta tables: each batch is appended once among concurrent writers, and every reader sees the same."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Event

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from msgspec import structs

from gamelake.delta import tables as storage_tables
from gamelake.delta.appends import BatchTransaction, TableHead, schema_of
from gamelake.delta.log import checkpoints as log_checkpoints
from gamelake.delta.log.checkpoints import CHECKPOINT_EVERY, is_log_checkpoint_due
from gamelake.delta.log.codec import entry_path
from gamelake.delta.log.table_features import TableUse
from gamelake.delta.tables import CommitOutcome, open_table
from gamelake.model.errors import ContractError, IncompatibleSchemaError, TransientError
from gamelake.objects.store import Location, Store
from tests.support.eventually import eventually
from tests.support.logged import logged
from tests.unit.delta.appends import TABLE, a_file, a_location, an_append, an_entry, some_rows, tables_in

_WRITERS, _COMMITS = 8, 12


class CountingStore(Store):
    """Counts what is read."""

    count = 0

    def get(self, path: str) -> bytes | None:
        self.count += 1
        return super().get(path)


def _table(folder: Path) -> DeltaTable:
    return open_table(a_location(folder), TABLE)


def _numbers(folder: Path) -> list[int]:
    return sorted(_table(folder).to_pyarrow_table(columns=["number"])["number"].to_pylist())


def test_a_batch_that_is_appended_twice_is_in_the_table_once(tmp_path: Path) -> None:
    entry = an_append(tmp_path, some_rows(0))
    batch = BatchTransaction("query-0", 0)

    with tables_in(tmp_path) as tables, tables_in(tmp_path) as others:
        outcomes = [tables.append(entry, batch), tables.append(entry, batch), others.append(entry, batch)]

    assert outcomes == [CommitOutcome.COMMITTED, CommitOutcome.ALREADY_COMMITTED, CommitOutcome.ALREADY_COMMITTED]
    assert _numbers(tmp_path) == [0, 1, 2]
    assert _table(tmp_path).version() == 0


def test_the_same_batch_id_of_another_application_is_another_batch(tmp_path: Path) -> None:
    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, some_rows(0)), BatchTransaction("query-0", 7))
        outcome = tables.append(an_append(tmp_path, some_rows(3)), BatchTransaction("query-1", 7))

        assert outcome is CommitOutcome.COMMITTED
        assert tables.transaction_version(TABLE, "query-1") == 7
        assert tables.transaction_version(TABLE, "query-2") is None
        assert tables.transaction_version("silver/none_events", "query-1") is None
    assert _numbers(tmp_path) == list(range(6))


def test_a_batch_older_than_the_last_one_counts_as_committed(tmp_path: Path) -> None:
    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, some_rows(0)), BatchTransaction("query-0", 5))

        outcome = tables.append(an_append(tmp_path, some_rows(3)), BatchTransaction("query-0", 4))

    assert outcome is CommitOutcome.ALREADY_COMMITTED


def test_a_log_checkpoint_that_can_not_be_written_is_reported_and_costs_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[str] = []
    due = next(version for version in range(1, CHECKPOINT_EVERY + 1) if is_log_checkpoint_due(TABLE, version))
    with tables_in(tmp_path) as tables:
        tables.on_log_checkpoint_failure = lambda: failures.append(TABLE)
        for batch in range(due + 1):
            if batch == due:
                Store(a_location(tmp_path)).put(entry_path(TABLE, due - 1), b"{")
            outcome = tables.append(an_append(tmp_path, some_rows(batch)), BatchTransaction("query-0", batch))

    assert outcome is CommitOutcome.COMMITTED
    (failed,) = logged(caplog, "log_checkpoint_failed")
    assert (failed["table"], failed["version"]) == (TABLE, due)
    assert failures == [TABLE]


def test_a_slow_log_checkpoint_lets_no_others_of_its_table_queue_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = list[str](), Event()

    def slow(location: Location, table: str) -> DeltaTable:
        begun.append(table)
        may_end.wait(60)
        return open_table(location, table)

    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, some_rows(0)), BatchTransaction("query-0", 0))
        monkeypatch.setattr(storage_tables, "open_table", slow)
        for batch in range(1, 3 * CHECKPOINT_EVERY):
            tables.append(an_append(tmp_path, some_rows(batch)), BatchTransaction("query-0", batch))
        may_end.set()

    assert begun == [TABLE]


def test_each_table_gets_a_log_checkpoint_every_fifty_commits_and_few_of_them_at_a_time() -> None:
    names = [f"silver/game_{number}_events" for number in range(30)]
    turns = [[version for version in range(200) if is_log_checkpoint_due(name, version)] for name in names]

    assert all(len(each) == 4 for each in turns)
    assert all(later - earlier == CHECKPOINT_EVERY for each in turns for earlier, later in pairwise(each))
    assert max(Counter(each[0] for each in turns).values()) <= 4


@pytest.mark.parametrize(("files", "commits"), [(0, 50), (1_999, 50), (2_000, 100), (10_000, 300), (1_000_000, 500)])
def test_the_more_live_files_a_table_has_the_more_commits_lie_between_its_log_checkpoints(
    files: int, commits: int
) -> None:
    turns = [version for version in range(2_000) if is_log_checkpoint_due(TABLE, version, files)]

    assert {later - earlier for earlier, later in pairwise(turns)} == {commits}


def test_a_log_checkpoint_that_names_many_files_delays_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_checkpoints, "_FILES_OF_AN_INTERVAL", 1)
    log = tmp_path / TABLE / "_delta_log"
    first, second = (version for version in range(1, 101) if is_log_checkpoint_due(TABLE, version))
    with tables_in(tmp_path) as tables:
        for batch in range(second + 1):
            tables.append(an_append(tmp_path, some_rows(batch)), BatchTransaction("query-0", batch))
            if batch == first:
                eventually(lambda: any(log.glob("*.checkpoint.parquet")))

    assert [int(each.name[:20]) for each in log.glob("*.checkpoint.parquet")] == [first]


def test_writers_that_race_to_create_a_table_all_get_their_rows_in(tmp_path: Path) -> None:
    start = Barrier(4)
    entries = [an_append(tmp_path, some_rows(10 * writer)) for writer in range(4)]

    def write(writer: int) -> CommitOutcome:
        with tables_in(tmp_path) as tables:
            start.wait()
            return tables.append(entries[writer], BatchTransaction(f"query-{writer}", 0))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(write, range(4)))

    assert outcomes == [CommitOutcome.COMMITTED] * 4
    assert len(_numbers(tmp_path)) == 12


def test_eight_writers_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    def write(writer: int) -> None:
        with tables_in(tmp_path) as tables:
            for commit in range(_COMMITS):
                rows = some_rows(writer * _COMMITS + commit, count=1)
                entry = an_entry(rows.schema, [a_file(tmp_path, rows)])
                transaction = BatchTransaction(f"query-{writer}", commit)
                assert tables.append(entry, transaction) is CommitOutcome.COMMITTED

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))

    log = sorted(int(path.stem) for path in (tmp_path / TABLE / "_delta_log").glob("*.json"))
    assert log == list(range(_WRITERS * _COMMITS))
    assert _numbers(tmp_path) == list(range(_WRITERS * _COMMITS))


def test_columns_appear_at_any_depth_and_old_rows_have_null_there(tmp_path: Path) -> None:
    first = pa.table({"number": [0], "place": [{"x": 1.0}]})
    second = pa.table({"number": [1], "place": [{"x": 2.0, "deep": {"a": "b"}}], "level": [7]})

    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, first), BatchTransaction("query-0", 0))
        tables.append(an_append(tmp_path, second), BatchTransaction("query-0", 1))
        known = tables.schema(TABLE)

    rows = _table(tmp_path).to_pyarrow_table().sort_by("number").select(["number", "place", "level"]).to_pylist()
    assert rows == [
        {"number": 0, "place": {"x": 1.0, "deep": None}, "level": None},
        {"number": 1, "place": {"x": 2.0, "deep": {"a": "b"}}, "level": 7},
    ]
    assert known == schema_of(_table(tmp_path))


def test_an_older_batch_removes_no_column(tmp_path: Path) -> None:
    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, some_rows(0)), BatchTransaction("query-0", 0))
        tables.append(an_append(tmp_path, some_rows(3).select(["number"])), BatchTransaction("query-0", 1))

    names = _table(tmp_path).to_pyarrow_table().sort_by("number")["name"].to_pylist()
    assert names == ["player 0", "player 1", "player 2", None, None, None]


def test_a_column_never_changes_its_type(tmp_path: Path) -> None:
    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, some_rows(0)), BatchTransaction("query-0", 0))

        with pytest.raises(IncompatibleSchemaError, match="column number is int64"):
            tables.append(an_append(tmp_path, pa.table({"number": ["x"]})), BatchTransaction("query-0", 1))


def test_a_reader_replays_few_commits_because_there_are_checkpoints(tmp_path: Path) -> None:
    rows = some_rows(0)
    entries = [an_entry(rows.schema, [a_file(tmp_path, rows)]) for _ in range(60)]

    with tables_in(tmp_path) as tables:
        for batch, entry in enumerate(entries):
            tables.append(entry, BatchTransaction("query-0", batch))

    log = tmp_path / TABLE / "_delta_log"
    checkpoints = [int(path.name.split(".")[0]) for path in log.glob("*.checkpoint.parquet")]
    assert len(checkpoints) in {1, 2}
    assert 59 - max(checkpoints) < CHECKPOINT_EVERY
    assert len(_numbers(tmp_path)) == 180
    with tables_in(tmp_path) as tables:
        assert tables.transaction_version(TABLE, "query-0") == 59


def test_there_is_no_table_before_its_first_batch(tmp_path: Path) -> None:
    with tables_in(tmp_path) as tables:
        assert tables.schema(TABLE) is None
    with pytest.raises(TableNotFoundError):
        _table(tmp_path)


@pytest.fixture
def two_days(tmp_path: Path) -> DeltaTable:
    rows = pa.table(
        {
            "number": pa.array([1, 2], pa.int64()),
            "nested": [{"label": "a", "amounts": [1.5]}, None],
            "named": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        }
    )
    later = rows.set_column(0, "number", pa.array([101, 102], pa.int64()))
    with tables_in(tmp_path) as tables:
        tables.append(an_append(tmp_path, rows, "2026-01-01"), BatchTransaction("query-0", 0))
        tables.append(an_append(tmp_path, later, "2026-01-02"), BatchTransaction("query-0", 1))
    return _table(tmp_path)


def test_deltalake_and_duckdb_read_the_same_rows_and_columns(two_days: DeltaTable) -> None:
    table = two_days.to_pyarrow_table().sort_by("number")
    dataset = two_days.to_pyarrow_dataset()

    found = duckdb.from_arrow(dataset).order("number").to_arrow_table()

    assert found.schema.names == table.schema.names == ["number", "nested", "named", "event_date"]
    assert found.to_pylist() == table.to_pylist()
    assert [row["event_date"].isoformat() for row in table.to_pylist()] == ["2026-01-01"] * 2 + ["2026-01-02"] * 2


def test_statistics_in_the_log_let_readers_skip_files(two_days: DeltaTable) -> None:
    actions = pa.table(two_days.get_add_actions(flatten=True)).sort_by("partition.event_date").to_pylist()
    assert [(action["min.number"], action["max.number"], action["num_records"]) for action in actions] == [
        (1, 2, 2),
        (101, 102, 2),
    ]
    assert [action["null_count.nested.label"] for action in actions] == [1, 1]

    dataset = two_days.to_pyarrow_dataset()
    by_value = list(dataset.get_fragments(filter=pc.field("number") > 50))
    by_day = list(dataset.get_fragments(filter=pc.field("event_date") == pa.scalar("2026-01-01").cast(pa.date32())))
    assert (len(list(dataset.get_fragments())), len(by_value), len(by_day)) == (2, 1, 1)


def test_another_partitioning_of_a_table_is_refused(tmp_path: Path) -> None:
    entry = an_append(tmp_path, some_rows(0))
    with tables_in(tmp_path) as tables:
        tables.append(entry, BatchTransaction("query-0", 0))

        with pytest.raises(ContractError, match="partitioning can't be changed"):
            tables.append(
                structs.replace(entry, partition_by=("event_date", "platform")), BatchTransaction("query-0", 1)
            )

    assert _numbers(tmp_path) == [0, 1, 2]


def test_an_append_costs_the_same_however_many_there_were(tmp_path: Path) -> None:
    entries = [an_append(tmp_path, some_rows(3 * batch)) for batch in range(120)]
    reads = CountingStore(a_location(tmp_path))
    head = None
    for batch, entry in enumerate(entries):
        with tables_in(tmp_path) as tables:
            if batch == 0:
                tables.append(entry, BatchTransaction("query-0", 0))
                head = TableHead.of(reads, TABLE, _table(tmp_path), "query-0", TableUse.APPEND)
                reads.count = 0
                continue
        assert head is not None
        assert head.put(reads, entry, BatchTransaction("query-0", batch))

    assert reads.count == 0
    assert _numbers(tmp_path) == list(range(360))


def test_a_commit_that_a_listing_lacks_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tables_in(tmp_path) as tables:
        for number in range(3):
            tables.append(an_append(tmp_path, some_rows(number)), BatchTransaction("query-0", number))
    lacking = tmp_path / TABLE / "_delta_log" / f"{1:020d}.json"
    entry = lacking.read_bytes()
    lacking.unlink()
    monkeypatch.setattr("gamelake.delta.tables._LISTINGS", 2)

    with pytest.raises(TransientError, match="at 2 attempts"):
        _table(tmp_path)

    lacking.write_bytes(entry)
    assert _table(tmp_path).version() == 2


def test_a_table_with_a_type_that_is_called_gap_is_not_listed_again(tmp_path: Path) -> None:
    log = tmp_path / TABLE / "_delta_log"
    log.mkdir(parents=True)
    schema = {"type": "struct", "fields": [{"name": "a", "type": "gap", "nullable": True, "metadata": {}}]}
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {},
            }
        },
    ]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))

    with pytest.raises(DeltaError, match="Unsupported Delta table type: 'gap'"):
        _table(tmp_path)
