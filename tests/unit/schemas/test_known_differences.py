"""Where the decoder does not give what the protobuf package reads, and why each difference is accepted.

All but the dates and the times far away need bytes that no Protobuf library writes.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.decoder import MessageDecoder
from tests.unit.schemas.protos import decoder_of, google_file, varint

_TEXT = """
syntax = "proto3";
package differences;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
message Event {
  int32 number = 1;
  oneof one { int32 left = 2; string right = 3; }
  map<string, int32> counts = 4;
  map<string, Inner> inners = 5;
  google.protobuf.Timestamp moment = 6;
  google.type.Date day = 7;
  Kind kind = 8;
  uint64 large = 9;
  google.protobuf.Duration lasted = 10;
  google.protobuf.Int32Value wrapped = 11;
  repeated double doubles = 12;
  Event again = 13;
}
message Inner { int32 number = 1; }
enum Kind { NONE = 0; SOME = 1; }
"""


@pytest.fixture(scope="module")
def decoder() -> MessageDecoder:
    texts = {"schema.proto": _TEXT, "google/type/date.proto": google_file("google/type/date.proto")}
    return MessageDecoder(message_at(compile_sources(texts), (0,)))


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def _day(year: int, month: int, day: int) -> bytes:
    return _bytes(7, _number(1, year) + _number(2, month) + _number(3, day))


@dataclass(frozen=True)
class Difference:
    """A body, the column that differs and what it holds."""

    why: str
    body: bytes
    column: str
    value: object


_SECOND = timedelta(seconds=1)
_ENTRY = _bytes(1, b"k")
_DIFFERENCES = (
    Difference(
        "a moment that comes twice is the last one, not both merged",
        _bytes(6, _number(1, 5)) + _bytes(6, _number(2, 7_000)),
        "moment",
        datetime(1970, 1, 1, 0, 0, 0, 7, tzinfo=UTC),
    ),
    Difference(
        "a duration that comes twice is the last one, not both merged",
        _bytes(10, _number(1, 5)) + _bytes(10, _number(2, 7_000)),
        "lasted",
        timedelta(microseconds=7),
    ),
    Difference(
        "a duration of 1 s - 1 ns is rounded away from zero",
        _bytes(10, _number(1, 1) + _number(2, -1)),
        "lasted",
        _SECOND,
    ),
    Difference(
        "a wrapper that comes twice is the last one, not both merged",
        _bytes(11, _number(1, 5)) + _bytes(11, b""),
        "wrapped",
        0,
    ),
    Difference("numbers cut off in the middle are those before", _bytes(12, b"\0" * 11), "doubles", [0.0]),
    Difference(
        "a message inside one of its own type that comes twice is the bytes of the last one",
        _bytes(13, _number(1, 1)) + _bytes(13, _number(8, 1)),
        "again",
        _number(8, 1),
    ),
    Difference(
        "a map entry with an unknown field stays",
        _bytes(4, _ENTRY + _number(2, 1) + _number(9, 1)),
        "counts",
        [("k", 1)],
    ),
    Difference("a map entry without its message is null", _bytes(5, _ENTRY), "inners", [("k", None)]),
    Difference("a map entry whose key has another wire type stays", _bytes(4, _number(1, 5)), "counts", [("", 0)]),
    Difference(
        "a moment that comes again with another wire type inside is 1970, not the one before",
        _bytes(6, _number(1, 86_400)) + _bytes(6, _bytes(1, b"k")),
        "moment",
        datetime(1970, 1, 1, tzinfo=UTC),
    ),
    Difference("a day that no calendar has becomes 1970-01-01", _day(2024, 2, 30), "day", date(1970, 1, 1)),
    Difference("a day without a year becomes 1970-01-01", _day(0, 12, 25), "day", date(1970, 1, 1)),
    Difference("a month without a day is its first day", _day(2024, 2, 0), "day", date(2024, 2, 1)),
    Difference("a number that the enum does not name is that number as text", _number(8, 7), "kind", "7"),
    Difference("a tag is taken modulo 2^32", varint(2**35 | 8) + varint(5), "number", 5),
    Difference(
        "a group that ends as another one is skipped all the same",
        varint(99 << 3 | 3) + varint(98 << 3 | 4) + _number(1, 5),
        "number",
        5,
    ),
)


@pytest.mark.parametrize("difference", _DIFFERENCES, ids=lambda difference: difference.why)
def test_a_known_difference_is_still_there(difference: Difference, decoder: MessageDecoder) -> None:
    _, columns = decoder.decode(pa.array([difference.body], pa.binary()))

    value = difference.value
    # A duration's column has microseconds.
    expected = value // timedelta(microseconds=1) if isinstance(value, timedelta) else value
    assert columns.column(difference.column).to_pylist() == [expected]


def test_a_text_of_proto2_that_is_not_utf_8_costs_its_record() -> None:
    text = 'syntax = "proto2"; message Event { optional string name = 1; }'

    good, _ = decoder_of(text).decode(pa.array([_bytes(1, b"\xff"), _bytes(1, b"a")], pa.binary()))

    assert good.tolist() == [1]


@pytest.mark.parametrize(("seconds", "microseconds"), [(2**62, 2**63 - 1), (-(2**62), -(2**63))])
def test_a_moment_beyond_64_bits_of_microseconds_is_the_last_one_they_hold(
    seconds: int, microseconds: int, decoder: MessageDecoder
) -> None:
    _, columns = decoder.decode(pa.array([_bytes(6, _number(1, seconds))], pa.binary()))

    assert columns.column("moment").cast(pa.int64()).to_pylist() == [microseconds]


def test_a_day_before_the_year_1_is_kept_as_its_number(decoder: MessageDecoder) -> None:
    _, columns = decoder.decode(pa.array([_day(-5, 1, 1)], pa.binary()))

    assert columns.column("day").cast(pa.int32()).to_pylist() == [-721354]


def test_the_largest_unsigned_number_is_a_decimal(decoder: MessageDecoder) -> None:
    _, columns = decoder.decode(pa.array([_number(9, 2**64 - 1)], pa.binary()))

    assert columns.column("large").to_pylist() == [Decimal(2**64 - 1)]
