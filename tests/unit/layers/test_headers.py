"""Kafka headers as a column of lists."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.bronze import HEADERS, header_lists
from tests.unit.properties import examples

Given = list[tuple[str | None, bytes | None]] | None

_KEYS = st.none() | st.text(st.characters(codec="utf-8"), max_size=6)
_HEADERS = st.none() | st.lists(st.tuples(_KEYS, st.none() | st.binary(max_size=6)), max_size=3)


@examples(200)
@given(st.lists(_HEADERS, max_size=6))
def test_any_headers_are_in_the_column(headers: list[Given]) -> None:
    found = header_lists(headers)

    assert found.type == HEADERS
    found.validate(full=True)
    assert found.to_pylist() == [
        [{"key": key, "value": value} for key, value in each] if each else None for each in headers
    ]


def test_no_records_have_an_empty_column() -> None:
    assert header_lists([]).equals(pa.nulls(0, HEADERS))
