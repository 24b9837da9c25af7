"""Values that come twice: of keys of a map and members of a oneof the last one counts, messages are merged.

At any depth, in their row only.
"""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from gamelake.schemas.decoder import MessageDecoder
from tests.unit.schemas.protos import a_number, decoder_of, sized

_TEXT = """
syntax = "proto3";
message Event {
  int32 number = 1;
  map<string, int32> counts = 2;
  oneof one { int32 left = 3; string right = 4; Inner third = 5; }
  Inner inner = 6;
  repeated Inner several = 7;
  map<int32, Inner> named = 8;
}
message Inner {
  map<bool, string> flags = 1;
  oneof one { int32 left = 2; string right = 3; }
}
"""


def _entry(field: int, key: bytes, value: int) -> bytes:
    return sized(field, sized(1, key) + a_number(2, value))


_TWO_MEMBERS = a_number(2, 1) + sized(3, b"last")
_TWO_KEYS = sized(1, a_number(1, 1) + sized(2, b"a")) + sized(1, a_number(1, 1) + sized(2, b"b"))
_LAST: dict[str, object] = {"flags": [], "left": None, "right": "last"}
_ONE = {"flags": [(True, "b")], "left": None, "right": None}
_CASES = [
    ("counts", _entry(2, b"k", 1) + _entry(2, b"j", 5) + _entry(2, b"k", 2), {("k", 2), ("j", 5)}),
    (
        "counts",
        b"".join(_entry(2, b"%d" % key, key) for key in range(40)) + _entry(2, b"5", 0),
        {(str(key), 0 if key == 5 else key) for key in range(40)},
    ),
    ("left", a_number(3, 1) + sized(4, b"last"), None),
    ("right", sized(4, b"first") + a_number(3, 1), None),
    ("inner", sized(6, _TWO_MEMBERS), _LAST),
    ("inner", sized(6, _TWO_KEYS), _ONE),
    ("several", sized(7, b"") + sized(7, _TWO_MEMBERS) + sized(7, _TWO_KEYS), [_LAST | {"right": None}, _LAST, _ONE]),
    ("named", sized(8, a_number(1, 3) + sized(2, _TWO_KEYS)), [(3, _ONE)]),
]


@pytest.fixture(scope="module")
def decoder() -> MessageDecoder:
    return decoder_of(_TEXT)


@pytest.mark.parametrize(("column", "body", "value"), _CASES)
def test_the_last_value_counts(column: str, body: bytes, value: object, decoder: MessageDecoder) -> None:
    good = a_number(1, 7) + _entry(2, b"k", 1) + _entry(2, b"j", 1) + a_number(3, 1)

    rows, columns = decoder.decode(pa.array([good, body + a_number(1, 8), good, b"\xff", body, good], pa.binary()))

    assert rows.tolist() == [0, 1, 2, 4, 5]
    found = columns.column(column).to_pylist()
    assert [set(each) if isinstance(value, set) else each for each in (found[1], found[3])] == [value, value]
    assert columns.column("number").to_pylist() == [7, 8, 7, 0, 7]
    assert columns.column("left").to_pylist()[::2] == [1, 1, 1]
    assert [sorted(each) for each in columns.column("counts").to_pylist()[::2]] == [[("j", 1), ("k", 1)]] * 3


_MERGED = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Event {
  int32 number = 1;
  google.protobuf.Timestamp moment = 2;
  google.protobuf.Duration lasted = 3;
  google.protobuf.Int32Value wrapped = 4;
  Event again = 5;
  map<string, google.protobuf.Timestamp> moments = 6;
  map<string, Inner> inners = 7;
  repeated Inner several = 8;
}
message Inner { int32 number = 1; google.protobuf.Timestamp moment = 2; }
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = a_number(1, 5), a_number(2, 7_000)
_TIME = _EPOCH + timedelta(seconds=5, microseconds=7)
_KEY = sized(1, b"k")
_MERGED_CASES = [
    ("moment", sized(2, _MOMENT[0]) + sized(2, _MOMENT[1]), _TIME),
    # Another wire type than declared is an unknown field.
    ("moment", sized(2, _MOMENT[0]) + sized(2, sized(1, b"k") + _MOMENT[1]), _TIME),
    ("lasted", sized(3, _MOMENT[0]) + sized(3, _MOMENT[1]), 5_000_007),
    ("wrapped", sized(4, a_number(1, 5)) + sized(4, b""), 5),
    ("again", sized(5, a_number(1, 1)) + sized(5, sized(3, b"")), a_number(1, 1) + sized(3, b"")),
    ("moments", sized(6, _KEY + sized(2, _MOMENT[0]) + sized(2, _MOMENT[1])), [("k", _TIME)]),
    ("moments", sized(6, _KEY), [("k", _EPOCH)]),
    ("inners", sized(7, _KEY), [("k", {"number": 0, "moment": None})]),
    (
        "several",
        sized(8, b"") + sized(8, a_number(1, 3) + sized(2, _MOMENT[0]) + sized(2, _MOMENT[1])),
        [{"number": 0, "moment": None}, {"number": 3, "moment": _TIME}],
    ),
]


@pytest.fixture(scope="module")
def merging() -> MessageDecoder:
    return decoder_of(_MERGED)


@pytest.mark.parametrize(("column", "body", "value"), _MERGED_CASES)
def test_messages_that_come_twice_are_merged(column: str, body: bytes, value: object, merging: MessageDecoder) -> None:
    good = a_number(1, 7) + sized(2, a_number(1, 86_400))

    rows, columns = merging.decode(pa.array([good, body + a_number(1, 8), good, b"\xff", body], pa.binary()))

    assert rows.tolist() == [0, 1, 2, 4]
    assert columns.column(column).to_pylist()[1::2] == [value, value]
    assert columns.column("number").to_pylist() == [7, 8, 7, 0]
    assert columns.column("moment").to_pylist()[::2] == [_EPOCH + timedelta(days=1)] * 2
