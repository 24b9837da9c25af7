"""Tables that the platform made follow the protocol, and the validator that says so finds each planted fault."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location
from tests.support.delta_validator import problems, table_problems
from tests.support.maintained_tables import new_maintained_table
from tests.support.player_tables import store_in

TABLE, NEWEST = "silver/archery_events", 3
Content = dict[str, Any]
# Each of these is a trap of bounds: shortened texts, NaN, infinities, values of no bound, nulls inside of nulls.
ROWS = pa.table(
    {
        "event_id": ["a" * 40, "z" * 31 + "\U0010ffff" * 4, None],
        "score": pa.array([1.5, float("nan"), -0.0]),
        "amount": pa.array([float("-inf"), 0.25, None]),
        "level": pa.array([2**63 - 1, -(2**63), None]),
        "long_text": ["m" * 5_000, "b", None],
        "raw": pa.array([b"\xff\x00", b"", None]),
        "badges": pa.array([["a", None], [], None]),
        "purchase": pa.array([{"price": 3.5, "product": None}, None, {"price": None, "product": "gems"}]),
        "at": pa.array([1_767_225_600_000_001, -1, None], pa.timestamp("us", "UTC")),
        "nothing": pa.array([None, None, None], pa.string()),
    }
)


def an_entry(folder: Path, rows: pa.Table, day: str = "2026-01-01") -> TableFiles:
    file = write_rows(store_in(folder), TABLE, rows, {"event_date": day})
    schema = delta_schema_json(pa.schema([*rows.schema, pa.field("event_date", pa.date32())]))
    return TableFiles(table=TABLE, partition_by=("event_date",), schema=schema, files=(file,))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of four versions: the last one has new columns, the third one a checkpoint."""
    with DeltaTables(store_in(tmp_path).location) as tables:
        for batch in (0, 1):
            tables.append(an_entry(tmp_path, ROWS.slice(batch)), BatchTransaction("query-0", batch))
        open_table(store_in(tmp_path).location, TABLE).create_checkpoint()
        richer = ROWS.append_column("map", pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())))
        tables.append(an_entry(tmp_path, richer), BatchTransaction("query-0", 2))
    return tmp_path


def entry_path(lake: Path, version: int = NEWEST) -> Path:
    return lake / f"{TABLE}/_delta_log/{version:020d}.json"


def change(lake: Path, kind: str, changes: Content, version: int = NEWEST) -> None:
    """Change keys of the only action of a kind in an entry."""
    lines = [json.loads(line) for line in entry_path(lake, version).read_text().splitlines()]
    [action] = [line[kind] for line in lines if kind in line]
    action.update(changes)
    entry_path(lake, version).write_text("\n".join(map(json.dumps, lines)))


def add_line(lake: Path, line: Content, version: int = NEWEST) -> None:
    text = entry_path(lake, version).read_text()
    entry_path(lake, version).write_text(f"{text.rstrip()}\n{json.dumps(line)}\n")


def action_of(lake: Path, kind: str, version: int = NEWEST) -> Content:
    lines = [json.loads(line) for line in entry_path(lake, version).read_text().splitlines()]
    [found] = [line[kind] for line in lines if kind in line]
    return dict(found)


def change_hint(lake: Path, changes: Content) -> None:
    hint = lake / TABLE / "_delta_log/_last_checkpoint"
    hint.write_text(json.dumps(json.loads(hint.read_text()) | changes))


def change_statistics(tree: str, column: str, value: object) -> Callable[[Path], None]:
    def damage(lake: Path) -> None:
        statistics = json.loads(action_of(lake, "add")["stats"])
        statistics[tree][column] = value
        change(lake, "add", {"stats": json.dumps(statistics)})

    return damage


def test_a_table_and_its_clone_follow_the_protocol_after_long_maintenance(tmp_path: Path) -> None:
    table = new_maintained_table(Location(uri=tmp_path.as_uri()))

    assert problems(tmp_path) == []
    log = tmp_path / SILVER_EVENTS / "_delta_log"
    shutil.copytree(log, tmp_path / "copy")
    # What log cleanup leaves: a checkpoint, and the entries after it.
    checkpoint = max(int(path.name[:20]) for path in log.glob("*.checkpoint.parquet"))
    for path in log.glob("*.json"):
        if int(path.name[:20]) <= checkpoint:
            path.unlink()
    assert table_problems(tmp_path / SILVER_EVENTS) == []
    assert table.events


def test_values_that_are_hard_to_bound_follow_the_protocol(lake: Path) -> None:
    assert problems(lake) == []
    least = json.loads(action_of(lake, "add")["stats"])["minValues"]
    assert set(least) == {"event_id", "level", "purchase", "at"}


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a least value": (change_statistics("minValues", "level", 0), "level: "),
    "a greatest value": (change_statistics("maxValues", "level", 9), "level: "),
    "a text": (change_statistics("maxValues", "event_id", "z" * 31), "event_id: "),
    "a time": (change_statistics("minValues", "at", "1970-01-01T00:00:00.000000Z"), "at: "),
    "a nested bound": (
        change_statistics("maxValues", "purchase", {"price": 3.25, "product": "gems"}),
        "purchase.price",
    ),
    "one bound": (change_statistics("minValues", "score", 1.5), "one bound"),
    "a count of nulls": (change_statistics("nullCount", "long_text", 0), "long_text has 1 nulls"),
    "an unknown column": (change_statistics("nullCount", "other", 0), "other, which is not a column"),
    "no statistics": (lambda lake: change(lake, "add", {"stats": "{}"}), "has 3 rows, the log says None"),
    "a size": (lambda lake: change(lake, "add", {"size": 1}), "bytes, the log says 1"),
    "a path": (lambda lake: change(lake, "add", {"path": "a b"}), "not percent-encoded"),
    "a lost file": (lambda lake: change(lake, "add", {"path": "lost"}), "lost: does not exist"),
    "a partition": (lambda lake: change(lake, "add", {"partitionValues": {}}), "partition columns"),
    "a number for a text": (lambda lake: change(lake, "add", {"size": "1"}), "size '1'"),
    "a transaction": (lambda lake: change(lake, "txn", {"version": 1}), "query-0 goes from 1 to 1"),
    "a lost entry": (lambda lake: entry_path(lake, 1).unlink(), "version 1 is missing"),
    "a lost column": (lambda lake: add_line(lake, {"metaData": action_of(lake, "metaData", 0)}), "loses map"),
    "a file twice": (lambda lake: add_line(lake, {"add": action_of(lake, "add", 1)}), "already"),
    "an unknown action": (lambda lake: add_line(lake, {"append": {}}), "append"),
    "features without a list": (
        lambda lake: add_line(lake, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}),
        "readerFeatures is None",
    ),
    "a file of no table": (
        lambda lake: add_line(lake, {"remove": {"path": "other", "dataChange": True}}),
        "other is removed",
    ),
    "a checkpoint that differs": (lambda lake: change(lake, "txn", {"appId": "other"}, 0), "checkpoint 1"),
    "a checkpoint's size": (lambda lake: change_hint(lake, {"size": 99}), "_last_checkpoint says 99"),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_each_planted_fault_is_found(lake: Path, fault: str) -> None:
    damage, message = DAMAGE[fault]

    damage(lake)

    assert any(message in each for each in problems(lake)), problems(lake)
