"""A time in JSON is RFC 3339 with its offset, at the gateway and in files alike."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.schemas.framing import HEADER_BYTES
from gamelake.schemas.json_types import parse_time, parse_times
from gamelake.streaming.files.formats.json_lines import JsonLines
from services.gateway.events.json_events import JsonEvents
from tests.unit.properties import examples
from tests.unit.streaming_files.contract import DECODER, MESSAGE, SCHEMA_ID, line
from tests.unit.times import invalid_times, valid_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = datetime(2026, 11, 22, 10, 30, 15, tzinfo=UTC)
LINES = JsonLines(MESSAGE, SCHEMA_ID)
GATEWAY = JsonEvents(MESSAGE)


def accepts(text: str) -> list[bool]:
    """Return if each parser accepts a time: one by one, several, an event of the gateway's, its columns, a line."""
    event = b'{"events": [' + line(event_time=text) + b"]}"
    raw = GATEWAY.split(event, 10)
    return [
        _succeeds(lambda: parse_time(text)),
        _succeeds(lambda: parse_times(["2026-11-22T10:00:00Z", text])),
        _succeeds(lambda: GATEWAY.read(raw[0])),
        not GATEWAY.to_columns(raw).uncertain.any(),
        not LINES.read([line(event_time=text)]).rejects.rows,
    ]


def _succeeds(parse: Callable[[], object]) -> bool:
    try:
        parse()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("text", valid_times(MOMENT))
def test_every_parser_accepts_a_time_by_rfc_3339(text: str) -> None:
    assert accepts(text) == [True] * 5
    assert parse_times([text, text]) == [parse_time(text)] * 2 == [MOMENT] * 2


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-22T10:30:15.123456789Z", 123_456),
        ("2026-11-22T10:30:15.9999999Z", 999_999),
        ("9999-12-31T23:59:59.999999999Z", 999_999),
        ("1969-12-31T23:59:59.999999999+00:00", 999_999),
    ],
)
def test_what_is_finer_than_a_microsecond_is_cut(text: str, microsecond: int) -> None:
    assert parse_time(text).microsecond == microsecond
    assert parse_times([text, text]) == [parse_time(text)] * 2
    assert _succeeds(lambda: GATEWAY.read(GATEWAY.split(b'{"events": [' + line(event_time=text) + b"]}", 10)[0]))


@st.composite
def fractional_times(draw: st.DrawFn) -> str:
    """A time with any number of digits after the second."""
    moment = draw(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)) | st.just(datetime(9999, 12, 31, 23, 59, 59)))  # noqa: DTZ001 # its offset is in the text
    digits = draw(st.text("0123456789", max_size=12) | st.text("9", min_size=6, max_size=12))
    offset = draw(st.sampled_from(["Z", "z", "+00:00"] if moment.year == 9999 else ["Z", "+05:30", "-11:00", "-00:00"]))
    return f"{moment:%m-%dT%H:%M:%S}".join([f"{moment.year:04d}-", f".{digits}" if digits else ""]) + offset


@examples(100)
@given(fractional_times(), st.sampled_from([b"", b',"attributes":{"k":"a","k":"b"}']))
def test_files_and_the_gateway_read_a_time_to_the_same_microsecond(text: str, also: bytes) -> None:
    # A key that comes twice has the line written again before it is read.
    event = line(event_time=text).removesuffix(b"}") + also + b"}"
    expected = parse_time(text)

    read = LINES.read([event])

    assert not read.rejects.rows, read.rejects.details
    _, columns = DECODER.decode(pa.array([value[HEADER_BYTES:] for value in read.values.to_pylist()], pa.binary()))
    assert columns.column("event_time").to_pylist() == [expected]
    (split,) = GATEWAY.split(b'{"events": [' + line(event_time=text) + b"]}", 10)
    # As a whole number: a float has no microseconds of distant years.
    sent: Any = GATEWAY.read(split)
    assert sent.event_time.ToMicroseconds() == (expected - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize("text", invalid_times(MOMENT))
def test_no_parser_accepts_another_text(text: str) -> None:
    assert accepts(text) == [False] * 5


@pytest.mark.parametrize("value", [None, 7, 1.5, True, [], {}])
def test_only_a_text_is_a_time(value: object) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_time(value)


@examples(100)
@given(st.lists(st.text(max_size=3) | st.sampled_from(['"', '","', "\\", *valid_times(MOMENT)]), max_size=4))
def test_many_texts_are_times_if_each_of_them_is(texts: list[str]) -> None:
    each_is = all(_succeeds(partial(parse_time, text)) for text in texts)

    assert _succeeds(lambda: parse_times(texts)) == each_is
    if each_is:
        assert parse_times(texts) == [parse_time(text) for text in texts]
