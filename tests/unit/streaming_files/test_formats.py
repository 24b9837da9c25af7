"""Files of each format become the same values as in Kafka."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.streaming.files.formats import delimited, parquet
from gamelake.streaming.files.formats.events import UnreadableFileError
from gamelake.streaming.files.formats.json_lines import JsonLines
from tests.unit.properties import examples
from tests.unit.streaming_files.contract import DECODER, FRAMER, MESSAGE, SCHEMA_ID, WHOLE, decoded, line, plain

LINES = JsonLines(MESSAGE, SCHEMA_ID)


def as_protobuf(event: dict[str, Any]) -> dict[str, Any]:
    """An event as Protobuf's own reader of JSON has it."""
    body = ParseDict(event, GetMessageClass(MESSAGE)()).SerializeToString()
    [row] = DECODER.decode(pa.array([body], pa.binary()))[1].to_pylist()
    return plain(row)


def test_a_line_with_every_field_is_the_event_with_every_field() -> None:
    [row] = decoded(LINES.read([json.dumps(WHOLE).encode()]).values)

    assert row == as_protobuf(WHOLE)
    assert row["event_time"] == datetime(2026, 11, 22, 8, 0, 0, 123_456, tzinfo=UTC)
    assert row["purchase"]["price_micros"] == 2**53 + 1


def test_missing_fields_of_a_line_have_their_protobuf_defaults() -> None:
    events: list[dict[str, Any]] = [{}, {"event_params": {}}, {"event_params": None, "experiment_ids": None}]

    rows = decoded(LINES.read([json.dumps(event).encode() for event in events]).values)

    assert rows == [as_protobuf(event) for event in events]


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
_EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "event_id": _TEXT,
        "game_name": _TEXT,
        "event_time": st.integers(10**9, 7 * 10**9).map(lambda second: datetime.fromtimestamp(second, UTC).isoformat()),
        "attributes": st.dictionaries(_TEXT, _TEXT, max_size=3),
        "experiment_ids": st.lists(_TEXT, max_size=3),
        "connection_type": st.sampled_from(["CONNECTION_TYPE_UNSPECIFIED", "CONNECTION_TYPE_CELLULAR"]),
        "event_params": st.fixed_dictionaries(
            {},
            optional={
                "amount": st.floats(allow_nan=False, allow_infinity=False),
                "level": st.integers(-(2**31), 2**31 - 1),
                "platform": _TEXT,
            },
        ),
        "purchase": st.fixed_dictionaries({}, optional={"price_micros": st.integers(-(2**63), 2**63 - 1)}),
        "error": st.fixed_dictionaries({}, optional={"fatal": st.booleans()}),
    },
)


@examples(60)
@given(st.lists(_EVENTS, min_size=1, max_size=5))
def test_lines_are_read_as_by_the_json_parser_of_protobuf(events: list[dict[str, Any]]) -> None:
    read = LINES.read([json.dumps(event).encode() for event in events])

    assert read.rejects.rows == []
    assert decoded(read.values) == [as_protobuf(event) for event in events]


@pytest.mark.parametrize(
    ("text", "event"),
    [
        # What one parser of JSON takes and another does not.
        ('{"attributes": {"a": "1", "a": "2"}, "event_id": "x"}', {"attributes": {"a": "2"}}),
        ('{"event_time": "2026-01-01t00:00:00.5z", "event_id": "x"}', {"event_time": "2026-01-01T00:00:00.5Z"}),
        (
            '{"event_params": {"client_event_time": "2026-01-01t00:00:00z"}, "event_id": "x"}',
            {"event_params": {"client_event_time": "2026-01-01T00:00:00Z"}},
        ),
        ('{"attributes": null, "event_time": null, "event_id": "x"}', {}),
        ('{"attributes": {"\\u0000": ""}, "event_id": "x"}', {"attributes": {"\0": ""}}),
        ('{"session_id": "\\ud842\\udfb7", "event_id": "x"}', {"session_id": "\U00020bb7"}),
        ('{"event_params": {"amount": -0.0}, "event_id": "x"}', {"event_params": {"amount": -0.0}}),
        ('{"event_params": {"amount": 5e-324}, "event_id": "x"}', {"event_params": {"amount": 5e-324}}),
    ],
)
def test_a_line_that_is_an_event_loses_no_value(text: str, event: dict[str, Any]) -> None:
    rows = decoded(LINES.read([line(), text.encode(), line()]).values)

    assert repr(rows[1]) == repr(as_protobuf(event | {"event_id": "x"}))
    assert len(rows) == 3


@pytest.mark.parametrize(
    "bad",
    [
        b"no JSON",
        b"[]",
        b'"text"',
        b'{"event_id": "a"',
        b'{"event_id": 7}',
        b'{"event_id": "a"}{"event_id": "b"}',
        b'{"event_time": "yesterday"}',
        b'{"event_time": "2026-11-22T10:00:00"}',
        b'{"event_params": {"level": "7"}}',
        b'{"event_params": {"level": 2147483648}}',
        b'{"connection_type": "CONNECTION_TYPE_CARRIER_PIGEON"}',
        b'{"event_id": "\xff"}',
        b"[" * 5_000,
        b'{"attributes": {"a": 1}}',
        b'{"attributes": {"mode": "hard"}, "purchase": {"price_micros": "yesterday"}}',
        b'{"event_time": "2026-11-22T10:00:00,5Z"}',
    ],
)
def test_a_line_that_is_no_event_alone_becomes_a_dead_letter_with_its_bytes(bad: bytes) -> None:
    read = LINES.read([line(), bad, line()])

    assert read.rejects.rows == [1]
    assert read.values[1].as_py() == bad
    assert len(decoded(read.values.take(pa.array([0, 2])))) == 2
    # The detail has nothing of the file's content.
    assert "yesterday" not in read.rejects.details[0]


@pytest.mark.parametrize(
    "bad",
    [
        b'{"email": "a@b.c"}',
        b'{"event_params": {"ip": "1.2.3.4"}}',
        b'{"event_id": "a", "e-mail": "a@b.c',
        b'{"event_id": 7, "e-mail": "a@b.c"}',
        b'{"event_id": {"e-mail": "a@b.c"}}',
        b'{"experiment_ids": [{"e-mail": "a@b.c"}]}',
        b'{"attributes": {"a": {"e-mail": "a@b.c"}}}',
    ],
)
def test_a_line_with_an_unknown_field_becomes_a_dead_letter_without_its_bytes(bad: bytes) -> None:
    read = LINES.read([bad, line()])

    assert read.rejects.reasons == [DeadLetterReason.UNKNOWN_FIELD]
    assert read.values[0].as_py() is None
    assert "a@b.c" not in read.rejects.details[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"connection_type": "secret"},
        {"connection_type": "secret - at `$.secret`"},
        {"event_time": "secret"},
        {"event_params": {"level": "secret"}},
        {"error": {"fatal": "secret"}},
        {"experiment_ids": "secret"},
        {"purchase": "secret"},
        {"attributes": {"secret": 7}},
    ],
)
def test_the_detail_of_a_bad_line_names_the_place_and_quotes_no_value(bad: dict[str, Any]) -> None:
    read = LINES.read([json.dumps(bad).encode(), line()])

    assert read.rejects.reasons == [DeadLetterReason.UNDECODABLE]
    assert "secret" not in read.rejects.details[0]
    assert next(iter(bad)) in read.rejects.details[0]


@examples(50)
@given(st.lists(st.binary(max_size=40).filter(lambda text: b"\n" not in text and text.strip()), min_size=1, max_size=6))
def test_whatever_a_line_contains_its_neighbours_are_events(odd: list[bytes]) -> None:
    lines = [good for text in odd for good in (text, line())]

    read = LINES.read(lines)

    assert len(read.values) == len(lines)
    assert all(row % 2 == 0 for row in read.rejects.rows)
    assert len(decoded(read.values.take(pa.array(range(1, len(lines), 2))))) == len(odd)


def read_parquet(content: bytes) -> list[pa.BinaryArray]:
    return list(parquet.read(memoryview(content), FRAMER, 2**30))


def as_delimited(*bodies: bytes) -> bytes:
    content = b""
    for body in bodies:
        length = len(body)
        while length > 0x7F:
            content += bytes([length & 0x7F | 0x80])
            length >>= 7
        content += bytes([length]) + body
    return content


@examples(100)
@given(st.lists(st.binary(max_size=300), max_size=6))
def test_delimited_messages_are_found_whole(bodies: list[bytes]) -> None:
    content = as_delimited(*bodies)

    for size in (1, 7, len(content) + 1):
        pieces = [content[start : start + size] for start in range(0, len(content), size)]
        assert [body for part in delimited.bodies(pieces) for body in part] == bodies


@pytest.mark.parametrize("content", [b"\x05abc", b"\xff", b"\xff\xff\xff\xff\xff\xff\x01a", as_delimited(b"abc")[:-1]])
def test_truncated_delimited_messages_make_the_file_unreadable(content: bytes) -> None:
    with pytest.raises(UnreadableFileError):
        list(delimited.bodies([content]))


def test_parquet_with_the_contracts_columns_gives_the_events() -> None:
    whole = DECODER.decode(pa.array([ParseDict(WHOLE, GetMessageClass(MESSAGE)()).SerializeToString()], pa.binary()))
    bodies = pa.array([ParseDict(WHOLE, GetMessageClass(MESSAGE)()).SerializeToString(), b""], pa.binary())
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches([FRAMER.columns(bodies)]), sink)

    [values] = read_parquet(sink.getvalue())

    assert decoded(values) == [*map(plain, whole[1].to_pylist()), as_protobuf({})]


def test_parquet_with_few_columns_is_read_and_the_others_are_empty() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"event_id": ["a", None], "event_params": [{"level": 3}, None]}), sink)

    [values] = read_parquet(sink.getvalue())

    assert decoded(values) == [as_protobuf({"event_id": "a", "event_params": {"level": 3}}), as_protobuf({})]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"email": ["a"]}),
        pa.table({"event_params": [{"ip": "1"}]}),
        pa.table({"event_id": [[1]]}),
        pa.table({"event_params": [{"level": "secret"}]}),
        pa.table({"event_id": [b"secret\xff"]}),
        pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["event_id", "event_id"]),
        pa.table({"event_params": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["level", "level"])}),
    ],
)
def test_parquet_with_other_columns_is_unreadable(table: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink)

    with pytest.raises(UnreadableFileError) as unreadable:
        read_parquet(sink.getvalue())

    # The text is a dead letter's detail, which quotes no value.
    assert "secret" not in str(unreadable.value)


def test_an_enumeration_of_parquet_is_read_by_name_and_by_number() -> None:
    names = ["CONNECTION_TYPE_WIFI", None, "CONNECTION_TYPE_CELLULAR"]
    tables = [
        pa.table({"connection_type": pa.array(names)}),
        pa.table({"connection_type": pa.array(names).dictionary_encode()}),
        pa.table({"connection_type": pa.array(names, pa.large_string())}),
        pa.table({"connection_type": pa.array([2, None, 1], pa.int64())}),
    ]
    found = []
    for table in tables:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        [values] = read_parquet(sink.getvalue())
        found.append([row["connection_type"] for row in decoded(values)])

    expected = [
        row["connection_type"] for row in map(as_protobuf, [{"connection_type": name} for name in names if name])
    ]
    assert [[row[0], row[2]] for row in found[:3]] == [expected] * 3
    assert len({row[1] for row in found}) == 1


def test_the_index_that_pandas_writes_into_parquet_is_ignored() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"event_id": ["a"], "__index_level_0__": [3]}), sink)

    [values] = read_parquet(sink.getvalue())

    assert decoded(values) == [as_protobuf({"event_id": "a"})]


def test_parquet_with_an_unknown_name_of_an_enumeration_is_unreadable_without_the_name() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"connection_type": ["secret"]}), sink)

    with pytest.raises(UnreadableFileError) as unreadable:
        read_parquet(sink.getvalue())

    assert "secret" not in str(unreadable.value)


def test_a_null_in_a_list_of_parquet_is_left_out_and_one_in_a_map_is_an_empty_text() -> None:
    sink, maps = io.BytesIO(), pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"experiment_ids": [["a", None, "b"]], "attributes": maps}), sink)

    [values] = read_parquet(sink.getvalue())

    expected = {"experiment_ids": ["a", "b"], "attributes": {"a": ""}}
    assert decoded(values) == [as_protobuf(expected)]
