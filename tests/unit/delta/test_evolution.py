"""A table's columns grow and never change."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.columns import merged
from gamelake.model.errors import IncompatibleSchemaError
from tests.unit.properties import examples

_TABLE = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("place", pa.struct([("x", pa.float64()), ("deep", pa.struct([("a", pa.int64())]))])),
        pa.field("items", pa.list_(pa.field("element", pa.struct([("n", pa.int64())])))),
        pa.field("named", pa.map_(pa.string(), pa.struct([("n", pa.int64())]))),
    ]
)


def test_a_schema_merged_with_itself_is_the_same_object() -> None:
    assert merged(_TABLE, pa.schema(list(_TABLE))) is _TABLE


def test_a_schema_that_lacks_columns_adds_nothing() -> None:
    assert merged(_TABLE, pa.schema([_TABLE.field("name")])) is _TABLE


def test_a_narrower_number_fits_into_a_wider_column() -> None:
    assert merged(_TABLE, pa.schema([("id", pa.int32())])) is _TABLE


def test_new_columns_come_last_in_delta_types() -> None:
    grown = merged(_TABLE, pa.schema([("level", pa.int32()), ("id", pa.int64())]))

    assert grown.names == [*_TABLE.names, "level"]
    assert grown.field("level").type == pa.int64()


def test_fields_are_added_inside_structs_lists_and_maps() -> None:
    incoming = pa.schema(
        [
            pa.field("place", pa.struct([("deep", pa.struct([("b", pa.float32())]))])),
            pa.field("items", pa.list_(pa.struct([("label", pa.string())]))),
            pa.field("named", pa.map_(pa.string(), pa.struct([("label", pa.string())]))),
        ]
    )

    grown = merged(_TABLE, incoming)

    assert grown.field("place").type.field("deep").type == pa.struct([("a", pa.int64()), ("b", pa.float64())])
    assert [field.name for field in grown.field("items").type.value_type] == ["n", "label"]
    assert [field.name for field in grown.field("named").type.item_type] == ["n", "label"]


@pytest.mark.parametrize(
    ("incoming", "column"),
    [
        (pa.field("id", pa.string()), "id"),
        (pa.field("name", pa.struct([("a", pa.string())])), "name"),
        (pa.field("place", pa.struct([("deep", pa.struct([("a", pa.string())]))])), "place.deep.a"),
        (pa.field("items", pa.list_(pa.struct([("n", pa.string())]))), "items.element.n"),
        (pa.field("items", pa.struct([("n", pa.int64())])), "items"),
        (pa.field("named", pa.map_(pa.string(), pa.struct([("n", pa.bool_())]))), "named.value.n"),
        (pa.field("named", pa.map_(pa.int64(), pa.struct([("n", pa.int64())]))), "named.key"),
    ],
)
def test_another_type_is_refused_naming_the_column(incoming: pa.Field, column: str) -> None:
    with pytest.raises(IncompatibleSchemaError, match=rf"^column {column} is "):
        merged(_TABLE, pa.schema([incoming]))


@pytest.mark.parametrize(
    "incoming",
    [
        pa.schema([("Name", pa.string())]),
        pa.schema([("level", pa.int64()), ("Level", pa.int64())]),
        pa.schema([("place", pa.struct([("X", pa.float64())]))]),
        pa.schema([("new", pa.struct([("a", pa.int64()), ("A", pa.int64())]))]),
        pa.schema([("new", pa.list_(pa.struct([("a", pa.int64()), ("A", pa.int64())])))]),
        pa.schema([("new", pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("A", pa.int64())])))]),
    ],
)
def test_names_that_differ_by_case_only_are_refused(incoming: pa.Schema) -> None:
    with pytest.raises(IncompatibleSchemaError, match="by case only"):
        merged(_TABLE, incoming)


# A name always has the same type here, so that any two schemas go together.
_NAMES = st.sets(st.sampled_from("abcdef"), max_size=4)
_TYPES = {name: pa.int64() if name in "abc" else pa.string() for name in "abcdef"}


@st.composite
def _schemas(draw: st.DrawFn) -> pa.Schema:
    plain = [pa.field(name, _TYPES[name]) for name in sorted(draw(_NAMES))]
    nested = [pa.field(name, _TYPES[name]) for name in sorted(draw(_NAMES))]
    if not nested:
        return pa.schema(plain)
    inner = pa.struct(nested)
    return pa.schema([*plain, ("struct", inner), ("list", pa.list_(pa.field("element", inner)))])


def _paths(fields: list[pa.Field], path: str = "") -> set[str]:
    found: set[str] = set()
    for field in fields:
        arrow = field.type.value_type if pa.types.is_list(field.type) else field.type
        inner = _paths(list(arrow), f"{path}{field.name}.") if pa.types.is_struct(arrow) else set()
        found |= {f"{path}{field.name}"} | inner
    return found


@examples(150)
@given(st.lists(_schemas(), min_size=1, max_size=4))
def test_no_order_of_additions_loses_a_column_and_none_comes_twice(additions: list[pa.Schema]) -> None:
    table, backwards = additions[0], additions[-1]
    for forth, back in zip(additions, reversed(additions), strict=True):
        table, backwards = merged(table, forth), merged(backwards, back)

    assert _paths(list(table)) == _paths(list(backwards)) == set().union(*(_paths(list(each)) for each in additions))
    assert all(merged(table, each) is table for each in additions)
    assert merged(table, backwards) is table
