"""A key of a map that comes twice, or two members of a oneof: the last one counts, at any depth, in its row only."""

import pyarrow as pa
import pytest

from gamelake.schemas.decoder import MessageDecoder
from tests.unit.schemas.protos import decoder_of, varint

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


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def _entry(field: int, key: bytes, value: int) -> bytes:
    return _bytes(field, _bytes(1, key) + _number(2, value))


_TWO_MEMBERS = _number(2, 1) + _bytes(3, b"last")
_TWO_KEYS = _bytes(1, _number(1, 1) + _bytes(2, b"a")) + _bytes(1, _number(1, 1) + _bytes(2, b"b"))
_LAST: dict[str, object] = {"flags": [], "left": None, "right": "last"}
_ONE = {"flags": [(True, "b")], "left": None, "right": None}
_CASES = [
    ("counts", _entry(2, b"k", 1) + _entry(2, b"j", 5) + _entry(2, b"k", 2), {("k", 2), ("j", 5)}),
    (
        "counts",
        b"".join(_entry(2, b"%d" % key, key) for key in range(40)) + _entry(2, b"5", 0),
        {(str(key), 0 if key == 5 else key) for key in range(40)},
    ),
    ("left", _number(3, 1) + _bytes(4, b"last"), None),
    ("right", _bytes(4, b"first") + _number(3, 1), None),
    ("inner", _bytes(6, _TWO_MEMBERS), _LAST),
    ("inner", _bytes(6, _TWO_KEYS), _ONE),
    (
        "several",
        _bytes(7, b"") + _bytes(7, _TWO_MEMBERS) + _bytes(7, _TWO_KEYS),
        [_LAST | {"right": None}, _LAST, _ONE],
    ),
    ("named", _bytes(8, _number(1, 3) + _bytes(2, _TWO_KEYS)), [(3, _ONE)]),
]


@pytest.fixture(scope="module")
def decoder() -> MessageDecoder:
    return decoder_of(_TEXT)


@pytest.mark.parametrize(("column", "body", "value"), _CASES)
def test_the_last_value_counts(column: str, body: bytes, value: object, decoder: MessageDecoder) -> None:
    good = _number(1, 7) + _entry(2, b"k", 1) + _entry(2, b"j", 1) + _number(3, 1)

    rows, columns = decoder.decode(pa.array([good, body + _number(1, 8), good, b"\xff", body, good], pa.binary()))

    assert rows.tolist() == [0, 1, 2, 4, 5]
    found = columns.column(column).to_pylist()
    assert [set(each) if isinstance(value, set) else each for each in (found[1], found[3])] == [value, value]
    assert columns.column("number").to_pylist() == [7, 8, 7, 0, 7]
    assert columns.column("left").to_pylist()[::2] == [1, 1, 1]
    assert [sorted(each) for each in columns.column("counts").to_pylist()[::2]] == [[("j", 1), ("k", 1)]] * 3
