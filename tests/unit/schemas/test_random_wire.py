"""Whatever legal bytes are sent, all columns hold what the Protobuf package reads; what it refuses is refused."""

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.decoder import MessageDecoder
from tests.unit.properties import examples
from tests.unit.schemas.expected_columns import expected_columns, same
from tests.unit.schemas.random_wire import wire

_FIELDS = """
  {optional} int32 a_int32 = 1;
  {optional} int64 a_int64 = 2;
  {optional} uint32 a_uint32 = 3;
  {optional} uint64 a_uint64 = 4;
  {optional} sint32 a_sint32 = 5;
  {optional} sint64 a_sint64 = 6;
  {optional} fixed32 a_fixed32 = 7;
  {optional} fixed64 a_fixed64 = 8;
  {optional} sfixed32 a_sfixed32 = 9;
  {optional} sfixed64 a_sfixed64 = 10;
  {optional} bool a_bool = 11;
  {optional} float a_float = 12;
  {optional} double a_double = 13;
  {optional} string a_string = 14;
  {optional} bytes a_bytes = 15;
  {optional} Kind kind = 16;
  repeated int32 numbers = 17;
  repeated sint64 more_numbers = 18;
  repeated double doubles = 19;
  repeated fixed32 fixeds = 20;
  repeated bool bools = 21;
  repeated string texts = 22;
  repeated Kind kinds = 23;
  map<string, int32> counts = 24;
  map<int32, Inner> inners = 25;
  map<bool, google.protobuf.Timestamp> moments = 26;
  map<sint64, Kind> kinds_by_number = 27;
  map<string, Event> events = 28;
  oneof one {{
    string right = 30;
    int32 left = 29;
    Inner third = 31;
    google.protobuf.Int32Value fourth = 32;
    Event fifth = 33;
  }}
  {optional} google.protobuf.Timestamp moment = 34;
  {optional} google.protobuf.Duration lasted = 35;
  {optional} google.protobuf.StringValue wrapped_text = 36;
  {optional} google.protobuf.DoubleValue wrapped_double = 37;
  repeated google.protobuf.UInt64Value wrapped = 38;
  {optional} Event again = 39;
  repeated Event several = 40;
  {optional} Inner inner = 41;
  repeated Inner many = 42;
  {optional} google.protobuf.Struct struct = 43;
  {optional} google.protobuf.BoolValue wrapped_bool = 44;
  {optional} Inner.Numbers lists = 45;
"""
_REST = """
message Inner {{
  {optional} int32 number = 1;
  {optional} google.protobuf.Timestamp moment = 2;
  oneof one {{ bool yes = 3; google.protobuf.Duration lasted = 4; }}
  map<string, string> names = 5;
  {optional} Inner deeper = 6;
  message Numbers {{ repeated fixed64 fixeds = 1; repeated float floats = 2; }}
}}
enum Kind {{ {closed} NONE = 0; SOME = 1; BELOW = -1; FAR = 2147483647; }}
"""
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "duration", "wrappers", "struct")
)


def _schema(syntax: str, optional: str = "", closed: str = "") -> str:
    fields = _FIELDS.format(optional=optional)
    return f"{syntax} {_IMPORTS} message Event {{ {fields} }} {_REST.format(optional=optional, closed=closed)}"


_SCHEMAS = {
    "proto3": _schema('syntax = "proto3";'),
    "proto3 optional": _schema('syntax = "proto3";', "optional"),
    "proto2": _schema('syntax = "proto2";', "optional"),
    "edition 2023": _schema('edition = "2023";'),
    "edition 2023, implicit and expanded": _schema(
        'edition = "2023"; option features.repeated_field_encoding = EXPANDED; option features.utf8_validation = NONE;',
        closed="option features.enum_type = CLOSED;",
    ),
}


@pytest.mark.parametrize("text", _SCHEMAS.values(), ids=_SCHEMAS)
@pytest.mark.parametrize("cut", [False])
def test_columns_hold_what_the_protobuf_package_reads(text: str, cut: bool) -> None:
    message = message_at(compile_sources({"schema.proto": text}), (0,))
    decoder, reference = MessageDecoder(message), GetMessageClass(message)

    @examples(20)
    @given(st.lists(wire(message, cut=cut), min_size=1, max_size=6))
    def check(bodies: list[bytes]) -> None:
        expected = {}
        for row, body in enumerate(bodies):
            try:
                expected[row] = expected_columns(reference.FromString(body))
            except DecodeError:
                continue
        good, columns = decoder.decode(pa.array(bodies, pa.binary()))

        assert good.tolist() == list(expected)
        for row, values in zip(expected, columns.to_pylist(), strict=True):
            for name, value in expected[row].items():
                assert same(values[name], value), (name, values[name], value, bodies[row])

    check()
