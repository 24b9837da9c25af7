"""Which rows break which rule: all rules at once give the same as each rule row by row."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.quality.evaluation import Evaluator
from tests.unit.properties import examples
from tests.unit.quality.rules_and_rows import COLUMNS, GAMES, a_rule, checked, some_rows

# A row, and what a condition comes to for it: true, false, or None for NULL.
Row: TypeAlias = Mapping[str, object]
Answer: TypeAlias = Callable[[Row], bool | None]
Condition: TypeAlias = tuple[str, Answer]

_NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
_ROWS = st.fixed_dictionaries(
    {
        "event_name": st.sampled_from([None, "", "purchase", "Level", "ö"]),
        "amount": st.one_of(st.none(), st.integers(-4, 4).map(lambda n: n / 2)),
        "level": _NUMBERS,
        "purchase": st.one_of(
            st.none(), st.fixed_dictionaries({"currency": st.sampled_from([None, "USD", "usd"]), "quantity": _NUMBERS})
        ),
    }
)


def _compared(name: str, operator: str, value: float) -> Condition:
    compare: dict[str, Callable[[float, float], bool]] = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
    }

    def answer(row: Row) -> bool | None:
        found = _value(row, name)
        return None if found is None else compare[operator](found, value)  # type: ignore[arg-type] # a column of numbers

    return f"{name} {operator} {value}", answer


def _value(row: Row, name: str) -> object:
    column, _, field = name.partition(".")
    found = row[column]
    return found if not field or found is None else found[field]  # type: ignore[index] # a column of structs


def _listed(name: str, values: list[str]) -> Condition:
    texts = ", ".join(f"'{value}'" for value in values)
    return f"{name} IN ({texts})", lambda row: None if _value(row, name) is None else _value(row, name) in values


def _is_null(name: str) -> Condition:
    return f"{name} IS NULL", lambda row: _value(row, name) is None


def _negated(inner: Condition) -> Condition:
    text, answer = inner

    def negated(row: Row) -> bool | None:
        found = answer(row)
        return None if found is None else not found

    return f"NOT ({text})", negated


def _joined(word: str, left: Condition, right: Condition) -> Condition:
    settles = word == "OR"

    def joined(row: Row) -> bool | None:
        results = (left[1](row), right[1](row))
        if settles in results:
            return settles
        return None if None in results else not settles

    return f"({left[0]}) {word} ({right[0]})", joined


_COLUMNS = st.sampled_from(["amount", "level", "purchase.quantity"])
_SIMPLE = st.one_of(
    st.builds(
        _compared, _COLUMNS, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.sampled_from([-1, 0, 0.5, 2])
    ),
    st.builds(
        _listed,
        st.sampled_from(["event_name", "purchase.currency"]),
        st.lists(st.sampled_from(["", "purchase", "USD", "ö"]), min_size=1, max_size=3),
    ),
    st.builds(_is_null, st.sampled_from(["amount", "event_name", "purchase", "purchase.currency"])),
)
_CONDITIONS = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        st.builds(_negated, inner), st.builds(_joined, st.sampled_from(["AND", "OR"]), inner, inner)
    ),
    max_leaves=5,
)
_OF = st.sampled_from([None, ["chess"], ["pool"]])


@examples(60)
@given(
    conditions=st.lists(st.tuples(_CONDITIONS, _OF), min_size=1, max_size=5),
    rows=st.lists(st.tuples(_ROWS, st.sampled_from([-1, 0, 1])), max_size=12),
)
def test_all_rules_at_once_give_the_same_as_each_rule_row_by_row(
    conditions: list[tuple[Condition, list[str] | None]], rows: list[tuple[Row, int]]
) -> None:
    rules = [a_rule(f"r{at}", text, games=games) for at, ((text, _), games) in enumerate(conditions)]
    with TemporaryDirectory() as folder:
        evaluator = Evaluator(checked(Path(folder), *rules))
    codes = np.array([code for _, code in rows], np.int64)

    found = {each.rule.name: each.rows.tolist() for each in evaluator.broken(_batch(rows), GAMES, codes)}

    expected = {
        f"r{at}": [code >= 0 and (not of or GAMES[code] in of) and answer(row) is False for row, code in rows]
        for at, ((_, answer), of) in enumerate(conditions)
    }
    assert found == {name: broken for name, broken in expected.items() if any(broken)}


def _batch(rows: list[tuple[Row, int]]) -> pa.RecordBatch:
    return some_rows([row for row, _ in rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def _broken(evaluator: Evaluator, rows: pa.RecordBatch) -> dict[str, list[bool]]:
    return {each.rule.name: each.rows.tolist() for each in evaluator.broken(rows, GAMES, np.zeros(len(rows), np.int64))}


def test_a_missing_column_is_null_and_null_satisfies_a_rule(folder: Path) -> None:
    evaluator = Evaluator(checked(folder, a_rule(), a_rule("there", "level IS NOT NULL")))
    rows = some_rows([{"event_name": "a"}, {"event_name": "b"}], pa.schema([COLUMNS.field("event_name")]))

    assert _broken(evaluator, rows) == {"there": [True, True]}


def test_a_row_for_which_a_condition_cannot_be_computed_satisfies_it_and_others_are_evaluated(folder: Path) -> None:
    evaluator = Evaluator(checked(folder, a_rule("number", "CAST(event_name AS INTEGER) > 0"), a_rule()))
    rows = some_rows([{"event_name": "x", "amount": -1}, {"event_name": "-7"}, {"event_name": "7"}])

    assert _broken(evaluator, rows) == {"number": [False, True, False], "paid": [True, False, False]}


def test_a_rule_that_does_not_fit_a_columns_type_is_reported_and_the_others_are_evaluated(folder: Path) -> None:
    evaluator = Evaluator(checked(folder, a_rule("level", "level % 2 = 0"), a_rule()))
    rows = pa.RecordBatch.from_pydict({"level": [["a"], ["b"]], "amount": [1.0, -1.0]})

    assert _broken(evaluator, rows) == {"paid": [False, True]}
    assert [rule.name for rule in evaluator.not_evaluated(rows)] == ["level"]


def test_timestamps_are_compared_in_utc(folder: Path) -> None:
    evaluator = Evaluator(
        checked(
            folder,
            a_rule("day", "event_date = DATE '2026-01-01'"),
            a_rule("hour", "event_time < TIMESTAMP '2026-01-01 23:30:00'"),
        )
    )
    rows = some_rows([{"event_time": 1_767_311_999_000_000}, {"event_time": 1_767_312_000_000_000}])

    assert _broken(evaluator, rows) == {"day": [False, True], "hour": [True, True]}


def test_there_may_be_more_rules_than_a_word_has_bits(folder: Path) -> None:
    rules = [a_rule(f"r{at}", f"level <> {at}") for at in range(150)]
    evaluator = Evaluator(checked(folder, *rules))

    found = _broken(evaluator, some_rows([{"level": 0}, {"level": 62}, {"level": 63}, {"level": 149}]))

    assert {name: flags.index(True) for name, flags in found.items()} == {"r0": 0, "r62": 1, "r63": 2, "r149": 3}


@pytest.mark.parametrize("text", ["read_text('/etc/hostname') <> amount", "getenv('HOME') = event_name"])
def test_a_rule_can_not_read_files_of_the_machine(folder: Path, text: str) -> None:
    with pytest.raises(Exception, match=r"rules\.yaml"):
        checked(folder, a_rule(expect=text))
