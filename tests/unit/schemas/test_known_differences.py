"""The places where the decoder and the protobuf package differ, and why each difference is accepted.

All but the dates and the times far away need bytes that no Protobuf library writes.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.decoder import MessageDecoder
from tests.unit.schemas.protos import a_number, decoder_of, google_file, sized, varint

_TEXT = """
syntax = "proto3";
package differences;
import "google/protobuf/timestamp.proto";
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
  repeated double doubles = 12;
}
message Inner { int32 number = 1; }
enum Kind { NONE = 0; SOME = 1; }
"""


@pytest.fixture(scope="module")
def decoder() -> MessageDecoder:
    texts = {"schema.proto": _TEXT, "google/type/date.proto": google_file("google/type/date.proto")}
    return MessageDecoder(message_at(compile_sources(texts), (0,)))


def _day(year: int, month: int, day: int) -> bytes:
    return sized(7, a_number(1, year) + a_number(2, month) + a_number(3, day))


@dataclass(frozen=True)
class Difference:
    """A body, the column that differs and what it holds."""

    why: str
    body: bytes
    column: str
    value: object


_ENTRY = sized(1, b"k")
_DIFFERENCES = (
    Difference("numbers cut off in the middle are those before", sized(12, b"\0" * 11), "doubles", [0.0]),
    Difference(
        "a map entry with an unknown field stays",
        sized(4, _ENTRY + a_number(2, 1) + a_number(9, 1)),
        "counts",
        [("k", 1)],
    ),
    Difference("a map entry whose key has another wire type stays", sized(4, a_number(1, 5)), "counts", [("", 0)]),
    Difference("a day that no calendar has becomes 1970-01-01", _day(2024, 2, 30), "day", date(1970, 1, 1)),
    Difference("a day without a year becomes 1970-01-01", _day(0, 12, 25), "day", date(1970, 1, 1)),
    Difference("a month without a day is its first day", _day(2024, 2, 0), "day", date(2024, 2, 1)),
    Difference("a number that the enum does not name is that number as text", a_number(8, 7), "kind", "7"),
    Difference("the largest unsigned number is a decimal", a_number(9, 2**64 - 1), "large", Decimal(2**64 - 1)),
    Difference("a tag is taken modulo 2^32", varint(2**35 | 8) + varint(5), "number", 5),
    Difference(
        "a group that ends as another one is skipped all the same",
        varint(99 << 3 | 3) + varint(98 << 3 | 4) + a_number(1, 5),
        "number",
        5,
    ),
)


@pytest.mark.parametrize("difference", _DIFFERENCES, ids=lambda difference: difference.why)
def test_a_known_difference_is_still_there(difference: Difference, decoder: MessageDecoder) -> None:
    _, columns = decoder.decode(pa.array([difference.body], pa.binary()))

    assert columns.column(difference.column).to_pylist() == [difference.value]


def test_a_text_of_proto2_that_is_not_utf_8_has_replacement_characters() -> None:
    text = 'syntax = "proto2"; message Event { optional string name = 1; map<string, int32> counts = 2; }'
    entry = sized(2, sized(1, b"\xc3k") + a_number(2, 5))

    good, columns = decoder_of(text).decode(pa.array([sized(1, b"a\xff") + entry, sized(1, b"a"), b""], pa.binary()))

    assert good.tolist() == [0, 1, 2]
    assert columns.column("name").to_pylist() == ["a\N{REPLACEMENT CHARACTER}", "a", None]
    assert columns.column("counts").to_pylist() == [[("\N{REPLACEMENT CHARACTER}k", 5)], [], []]


def test_keys_of_a_map_that_replacement_characters_make_the_same_cost_their_record() -> None:
    text = 'syntax = "proto2"; message Event { map<string, int32> counts = 2; }'
    keys = [sized(2, sized(1, key) + a_number(2, 5)) for key in (b"\xff", b"\xfe", b"a")]

    good, _ = decoder_of(text).decode(pa.array([keys[0] + keys[1], keys[0] + keys[2]], pa.binary()))

    assert good.tolist() == [1]


@pytest.mark.parametrize("syntax", ['syntax = "proto2";', 'edition = "2023"; option features.enum_type = CLOSED;'])
def test_a_number_that_a_closed_enum_does_not_name_is_that_number_as_text(syntax: str) -> None:
    optional = "optional" if "proto2" in syntax else ""
    text = f"{syntax} message Event {{ {optional} Kind kind = 1; repeated Kind kinds = 2; }} enum Kind {{ SOME = 5; }}"

    _, columns = decoder_of(text).decode(pa.array([a_number(1, 5) + a_number(1, 7) + a_number(2, 7)], pa.binary()))

    assert columns.to_pylist() == [{"kind": "7", "kinds": ["7"]}]


@pytest.mark.parametrize(
    ("column", "body", "number"),
    [
        ("moment", sized(6, a_number(1, 2**62)), 2**63 - 1),
        ("moment", sized(6, a_number(1, -(2**62))), -(2**63)),
        # Cut toward zero.
        ("moment", sized(6, a_number(2, -999)), 0),
        ("moment", sized(6, a_number(2, -1_000)), -1),
        ("moment", sized(6, a_number(2, -(2**31))), -2_147_483),
        ("day", _day(-5, 1, 1), -721354),
    ],
    ids=["too late", "too early", "999 ns before", "1,000 ns before", "2^31 ns before", "a day before the year 1"],
)
def test_a_time_beyond_its_type_is_the_last_one_and_negative_nanoseconds_are_cut_toward_zero(
    column: str, body: bytes, number: int, decoder: MessageDecoder
) -> None:
    _, columns = decoder.decode(pa.array([body], pa.binary()))

    assert columns.column(column).cast({"moment": pa.int64(), "day": pa.int32()}[column]).to_pylist() == [number]
