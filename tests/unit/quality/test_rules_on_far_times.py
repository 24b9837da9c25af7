"""Times beyond the limits of the SQL engine: Protobuf's timestamps have more years than DuckDB's."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS
from gamelake.quality.checking import check_rules
from gamelake.quality.engine import ROWS, engine, rows_without_zones
from gamelake.quality.evaluation import Evaluator
from tests.unit.quality.rules_and_rows import COLUMNS, GAMES, a_rule, checked, loaded
from tests.unit.streaming.tasks import KafkaTaskRecord, TaskLakehouse, a_record, numbered

_UTC = pa.timestamp("us", "UTC")
_FAR = pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()).view(_UTC)
_TEXTS = ["294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "1970-01-01 00:00:00", None]
_OFFSETS = pa.array([0, 2, 4], pa.int32())
_STRUCTS = pa.StructArray.from_arrays([_FAR], ["at"], mask=pa.array([False, False, False, True]))


def _as_texts(column: pa.Array) -> list[object]:
    """Each value of a column as the engine writes it."""
    connection = engine()
    connection.register(ROWS, rows_without_zones(pa.RecordBatch.from_arrays([column], ["it"])))
    found = connection.sql(f"SELECT to_json(it) FROM {ROWS}").fetchall()  # noqa: S608 # a constant
    return [None if text is None else json.loads(text) for (text,) in found]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (_FAR, _TEXTS),
        (_FAR.slice(1, 2), _TEXTS[1:3]),
        (_STRUCTS, [*({"at": text} for text in _TEXTS[:3]), None]),
        (pa.ListArray.from_arrays(_OFFSETS, _FAR), [_TEXTS[:2], _TEXTS[2:]]),
        (pa.ListArray.from_arrays(_OFFSETS, _STRUCTS).slice(1), [[{"at": _TEXTS[2]}, None]]),
        (
            pa.MapArray.from_arrays(_OFFSETS, pa.array(["a", "b", "c", "d"]), _FAR),
            [dict(zip("ab", _TEXTS[:2], strict=True)), dict(zip("cd", _TEXTS[2:], strict=True))],
        ),
    ],
)
def test_a_time_beyond_the_limits_is_the_nearest_within_them(column: pa.Array, texts: list[object]) -> None:
    assert _as_texts(column) == texts


def test_times_within_the_limits_are_unchanged() -> None:
    values = [-9_223_372_022_400_000_000, -1, 0, 2**63 - 2, None]
    times = pa.array(values, pa.int64()).view(_UTC)

    kept = rows_without_zones(pa.RecordBatch.from_arrays([times], ["it"]))

    assert kept["it"].cast(pa.int64()).to_pylist() == values


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("client_time <= event_time", [True, False, False, False]),
        # Where it can't be computed, a condition counts as satisfied: by a kernel too.
        ("client_time + INTERVAL 1 DAY >= event_time", [False, True, False, False]),
        ("client_time - INTERVAL 1 DAY <= event_time", [True, False, False, False]),
        ("CAST(client_time AS VARCHAR) <> '294247-01-10 04:00:54.775806'", [True, False, False, False]),
        ("date_diff('day', client_time, event_time) <= 0", [False, True, False, False]),
    ],
)
def test_a_rule_is_judged_on_times_beyond_the_limits(condition: str, broken: list[bool], tmp_path: Path) -> None:
    columns = COLUMNS.append(pa.field("client_time", _UTC))
    rules = checked(tmp_path / "rules", a_rule(expect=condition), columns=columns)
    rows = pa.RecordBatch.from_pydict({"event_time": pa.repeat(_FAR[2], 4), "client_time": _FAR})

    found = Evaluator(rules).broken(rows, GAMES, np.zeros(4, np.int64))

    assert [list(each.rows) for each in found] == ([broken] if any(broken) else [])


def test_a_row_with_such_a_time_is_quarantined_and_stops_nothing(tmp_path: Path) -> None:
    rules = check_rules(loaded(tmp_path / "rules", a_rule()), COMMON_SCHEMA, ())
    bad = a_record(3, eventParams={"amount": -1.0}).value
    assert bad is not None
    # Once more event_params, which are merged: client_event_time in the first second that 64 bits hold.
    params = b"\x3a\x0b\x08" + b"\x80" * 9 + b"\x01"
    records = numbered([KafkaTaskRecord(value=bad + b"\x42\x0d" + params), a_record(3)])

    outcome = TaskLakehouse(tmp_path / "lake").run(records, rules=rules)

    (row,) = outcome.rows(QUARANTINE)
    assert json.loads(row["row"])["client_event_time"] == _TEXTS[1]
    assert outcome.count(SILVER_EVENTS) == 1
