"""Random Arrow tables of the types that Delta tables keep, for Hypothesis."""

import pyarrow as pa
from hypothesis import strategies as st

from gamelake.delta.columns import MICROSECONDS_UTC, UINT64_AS_DECIMAL

_INT64 = st.integers(-(2**63), 2**63 - 1)
_CHARACTERS = st.characters(codec="utf-8")
SCALARS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int64(): _INT64,
    pa.float64(): st.floats(),
    pa.string(): st.text(_CHARACTERS, max_size=40) | st.sampled_from(["", "a" * 33, "a" * 32 + "\U0010ffff"]),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=8),
    MICROSECONDS_UTC: _INT64 | st.integers(-(2**45), 2**51),
    pa.date32(): st.integers(-(2**31), 2**31 - 1) | st.integers(-20_000, 40_000),
    UINT64_AS_DECIMAL: st.integers(0, 2**64 - 1),
}
# Also Parquet's names for what is in a list or a map, and a name that looks like a path.
_FIELDS = ["f0", "f1", "list", "element", "key_value", "value", "a.b"]
_AS_NUMBERS = {MICROSECONDS_UTC: pa.int64(), pa.date32(): pa.int32()}


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    """A column of a simple type, with nulls."""
    arrow = draw(st.sampled_from(list(SCALARS)))
    values = draw(st.lists(st.none() | SCALARS[arrow], min_size=rows, max_size=rows))
    numbers = pa.array(values, _AS_NUMBERS.get(arrow, arrow))
    return numbers.cast(arrow)


@st.composite
def structs(draw: st.DrawFn, rows: int, depth: int = 0) -> pa.Array:
    """A column of structs, which may hold structs and lists, with nulls."""
    deeper = columns(rows) if depth > 1 else columns(rows) | structs(rows, depth + 1) | lists(rows)
    children = draw(st.lists(deeper, min_size=1, max_size=3))
    nulls = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    names = draw(st.permutations(_FIELDS))[: len(children)]
    return pa.StructArray.from_arrays(children, names=names, mask=pa.array(nulls, pa.bool_()))


@st.composite
def lists(draw: st.DrawFn, rows: int) -> pa.Array:
    """A column of lists or maps, with nulls."""
    arrow = draw(st.sampled_from([pa.list_(pa.field("element", pa.int64())), pa.map_(pa.string(), pa.float64())]))
    items = st.integers(0, 9) if pa.types.is_list(arrow) else st.tuples(st.text(max_size=3), st.floats(0, 1))
    values = st.none() | st.lists(items, max_size=3)
    return pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), arrow)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of a few columns and rows."""
    rows = draw(st.integers(1, 8))
    kinds = columns(rows) | structs(rows) | lists(rows)
    content = draw(st.lists(kinds, min_size=1, max_size=5))
    return pa.table(dict(zip((f"c{place}" for place in range(len(content))), content, strict=True)))
