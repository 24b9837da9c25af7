"""Frames: what Confluent's own serializer writes, and whatever else may stand in a topic."""

import time

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.framing import MessageType, Unframed, unframe
from tests.unit.properties import examples
from tests.unit.schemas.protos import AnyMessage, frame, varint

_MANY = "\n".join(f"message M{number} {{ int32 n = 1; }}" for number in range(3, 201))
_TEXT = f"""
syntax = "proto3";
package frames;
message M0 {{
  int32 n = 1;
  message Inner {{
    int32 n = 1;
    message First {{ int32 n = 1; }}
    message Second {{ int32 n = 1; }}
  }}
}}
message M1 {{ int32 n = 1; message A {{ int32 n = 1; }} message B {{ int32 n = 1; }} }}
message M2 {{ int32 n = 1; }}
{_MANY}
"""
_SCHEMAS = compile_sources({"schema.proto": _TEXT})


def _registry(first_id: int) -> SchemaRegistryClient:
    """Confluent's own registry in memory, whose next id is the given one."""
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    for taken in range(1, first_id):
        registry.register_schema(f"taken-{taken}", Schema(f'syntax = "proto3"; package taken{taken};', "PROTOBUF"))
    return registry


def _serialized(index: tuple[int, ...], number: int, schema_id: int) -> tuple[bytes, bytes]:
    """Serialize a message with Confluent's code: the value, and the body that stands in it."""
    message: AnyMessage = GetMessageClass(message_at(_SCHEMAS, index))
    event = message(n=number)
    options = {"auto.register.schemas": True, "use.deprecated.format": False}
    serializer = ProtobufSerializer(message, _registry(schema_id), options)
    value = serializer(event, SerializationContext("events", MessageField.VALUE))
    assert value is not None
    return value, event.SerializeToString()


@pytest.mark.parametrize("schema_id", [1, 300])
@pytest.mark.parametrize("index", [(0,), (1,), (200,), (0, 0), (1, 1), (0, 0, 1)])
def test_a_value_of_confluents_serializer_is_parsed(index: tuple[int, ...], schema_id: int) -> None:
    value, body = _serialized(index, 150, schema_id)

    unframed = unframe(pa.array([value], pa.binary()))

    assert unframed.problems == []
    assert [group.message_type for group in unframed.groups] == [MessageType(schema_id, index)]
    assert unframed.groups[0].bodies.to_pylist() == [body]


def test_values_of_many_message_types_are_grouped_by_type() -> None:
    made = [(index, *_serialized(index, number, 5)) for number in range(3) for index in ((0,), (200,), (0, 0, 1))]

    unframed = unframe(pa.array([value for _, value, _ in made], pa.binary()))

    assert {group.message_type.index: group.rows.tolist() for group in unframed.groups} == {
        (0,): [0, 3, 6],
        (200,): [1, 4, 7],
        (0, 0, 1): [2, 5, 8],
    }
    for group in unframed.groups:
        assert group.bodies.to_pylist() == [made[row][2] for row in group.rows]


def test_message_types_beyond_the_common_ones_and_bad_frames_between_them_are_distinguished() -> None:
    kinds = [(0,), *((number % 7, number) for number in range(1, 60))]
    good = [frame(1, b"body%d" % number, *index) for number in range(3) for index in kinds]
    bad = [b"\0\0\0\0\1\x80", b"\0\0\0\0\1\4\2", b"\0\0\0\0\1\2\1"]

    unframed = unframe(pa.array([*bad, *good, *bad], pa.binary()))

    assert unframed.bad_rows.tolist() == [0, 1, 2, *range(len(good) + 3, len(good) + 6)]
    found = {group.message_type.index: (group.rows.tolist(), group.bodies.to_pylist()) for group in unframed.groups}
    assert found == {
        index: ([3 + place + each * len(kinds) for each in range(3)], [b"body%d" % each for each in range(3)])
        for place, index in enumerate(kinds)
    }


def test_the_index_of_another_message_costs_little_more_than_that_of_the_first() -> None:
    first, second = (pa.array([frame(1, b"body" * 20, *index)] * 50_000, pa.binary()) for index in ((0,), (1,)))

    # Before, it took thirty times as long.
    assert _seconds(second) < 8 * _seconds(first)


def _seconds(values: pa.BinaryArray) -> float:
    taken = []
    for _ in range(5):
        started = time.process_time()
        unframe(values)
        taken.append(time.process_time() - started)
    return min(taken)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "the record has no value"),
        (b"", "the value has 0 bytes, fewer than a frame"),
        (b"\0\0\0\0\1", "the value has 5 bytes, fewer than a frame"),
        (b'{"event": 1}', "the first byte is 123, not 0"),
        (b"\0\0\0\0\1\x80", "the message index is not an array of varints"),
        (b"\0\0\0\0\1\2\x80\x80", "the message index is not an array of varints"),
        (b"\0\0\0\0\1\4\2", "the message index is not an array of varints"),
        (b"\0\0\0\0\1\1", "the message index is not an array of varints"),
        (b"\0\0\0\0\1\2\1", "the message index is not an array of varints"),
        (b"\0\0\0\0\1" + varint(17 << 1) + b"\0" * 17, "the message index is not an array of varints"),
    ],
)
def test_what_is_wrong_with_a_bad_frame_is_reported_without_its_content(value: bytes | None, problem: str) -> None:
    unframed = unframe(pa.array([value], pa.binary()))

    assert unframed.groups == []
    assert unframed.problems == [problem]


def test_the_index_of_the_first_message_may_also_be_written_in_full() -> None:
    short, long = b"\0\0\0\0\x09\0body", b"\0\0\0\0\x09\2\0body"

    unframed = unframe(pa.array([short, long], pa.binary()))

    assert {group.message_type for group in unframed.groups} == {MessageType(9, (0,))}
    assert [group.bodies.to_pylist() for group in unframed.groups] == [[b"body"], [b"body"]]


def test_a_batch_without_records_has_no_groups() -> None:
    assert unframe(pa.array([], pa.binary())).groups == []


_INDEXES = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=16).map(tuple)


@examples(200)
@given(st.integers(0, 2**32 - 1), _INDEXES, st.binary(max_size=20))
def test_any_id_index_and_body_survive_the_eachtrip(schema_id: int, index: tuple[int, ...], body: bytes) -> None:
    unframed = unframe(pa.array([frame(schema_id, body, *index)], pa.binary()))

    assert [(group.message_type, group.bodies.to_pylist()) for group in unframed.groups] == [
        (MessageType(schema_id, index), [body])
    ]


_FRAMES = st.builds(
    lambda schema_id, index, body: frame(schema_id, body, *index),
    st.integers(0, 3),
    st.lists(st.integers(0, 300), min_size=1, max_size=3),
    st.binary(max_size=6),
)
_VALUES = st.lists(
    st.none() | st.binary(max_size=12) | st.binary(max_size=8).map(lambda rest: b"\0\0\0\0" + rest) | _FRAMES,
    max_size=12,
)


def _rows(unframed: Unframed) -> list[int]:
    return sorted([*unframed.bad_rows.tolist(), *(row for group in unframed.groups for row in group.rows.tolist())])


@examples(300)
@given(_VALUES)
def test_every_row_is_in_one_group_or_among_the_bad_ones(values: list[bytes | None]) -> None:
    unframed = unframe(pa.array(values, pa.binary()))

    assert _rows(unframed) == list(range(len(values)))
    assert len(unframed.problems) == len(unframed.bad_rows)
    for group in unframed.groups:
        for row, body in zip(group.rows, group.bodies.to_pylist(), strict=True):
            value = values[row]
            assert value is not None
            assert value.endswith(body)


def _content(unframed: Unframed) -> tuple[object, ...]:
    groups = [(group.message_type, group.rows.tolist(), group.bodies.to_pylist()) for group in unframed.groups]
    return groups, unframed.bad_rows.tolist(), unframed.problems


@examples(200)
@given(_VALUES, st.integers(0, 6), st.integers(0, 12))
def test_a_slice_is_parsed_like_a_copy_of_its_values(values: list[bytes | None], start: int, length: int) -> None:
    whole = pa.array(values, pa.binary())
    alone = pa.array(values[start : start + length], pa.binary())

    assert _content(unframe(whole.slice(start, length))) == _content(unframe(alone))
