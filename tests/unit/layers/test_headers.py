"""Kafka headers between Spark's JSON text and the table's list of structs."""

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.bronze import HEADERS, parse_headers
from tests.unit.properties import examples

Headers = list[tuple[str | None, bytes | None]] | None


def as_spark_gives(headers: Headers) -> str | None:
    """Write headers as `HEADERS_AS_JSON` does: values in hexadecimal, null fields left out."""
    if headers is None:
        return None
    fields = [{"key": key, "value": None if value is None else value.hex().upper()} for key, value in headers]
    return json.dumps([{name: text for name, text in each.items() if text is not None} for each in fields])


def _as_table(headers: Headers) -> list[dict[str, object]] | None:
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]


_KEYS = st.none() | st.text(st.characters(codec="utf-8"), max_size=6)
_HEADERS = st.none() | st.lists(st.tuples(_KEYS, st.none() | st.binary(max_size=6)), max_size=3)


@examples(200)
@given(st.lists(_HEADERS, max_size=6), st.integers(0, 3))
def test_any_headers_survive_the_round_trip_through_json(headers: list[Headers], start: int) -> None:
    texts = pa.array([as_spark_gives(each) for each in headers], pa.string()).slice(start)

    parsed = parse_headers(texts)

    assert parsed.type == HEADERS
    assert parsed.to_pylist() == [_as_table(each) for each in headers[start:]]
