"""What kinds of Protobuf schemas decode, and what becomes of records whose schema does not."""

import base64
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from gamelake.delta.data_files import encode_parquet
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import SchemaError
from gamelake.schemas.compiler import compile_sources
from tests.unit.schemas.protos import a_decoder, decoder_of, frame, message_class

_PROTO2 = """
syntax = "proto2";
package old;
message Event {
  required string name = 1;
  optional int32 level = 2 [default = 7];
  optional Kind kind = 3 [default = SOME];
  repeated int32 scores = 4 [packed = true];
  extensions 100 to 200;
  enum Kind { NONE = 1; SOME = 2; }
}
extend Event { optional int32 extra = 101; }
"""
_WITH_EMPTY = """
syntax = "proto3";
import "google/protobuf/empty.proto";
message Event {
  int32 number = 1;
  google.protobuf.Empty mark = 2;
  repeated google.protobuf.Empty marks = 3;
  map<string, google.protobuf.Empty> named_marks = 4;
  Hollow hollow = 5;
}
message Hollow { google.protobuf.Empty mark = 1; repeated Hollower hollower = 2; }
message Hollower { google.protobuf.Empty mark = 1; }
"""
_GROUP = """
syntax = "proto2";
message Event { optional Inner inner = 1; }
message Inner { optional Event again = 1; repeated group Part = 2 { optional int32 number = 1; } }
"""
_EDITION = """
edition = "2023";
message Event {
  int32 number = 1;
  int32 always = 2 [features.field_presence = IMPLICIT];
  repeated int32 joined = 3;
  repeated int32 expanded = 4 [features.repeated_field_encoding = EXPANDED];
  Kind kind = 5;
  string name = 6 [default = "nameless"];
  Event again = 7;
  enum Kind { option features.enum_type = CLOSED; SOME = 3; }
}
"""
_ALIASES = """
syntax = "proto3";
message Event { Kind kind = 1; Kind other = 2; }
enum Kind { option allow_alias = true; NONE = 0; FIRST = 2; SECOND = 2; }
"""
_CLASHING = 'syntax = "proto3"; message Event { int32 score = 1; int32 Score = 2; }'
_PART = 'syntax = "proto3"; message A { int32 number = 1; }'
_RECURSIVE = """
syntax = "proto3";
message Node { string name = 1; Node left = 2; repeated Node children = 3; map<string, Node> named = 4; }
"""


def test_proto2_decodes_with_null_where_a_field_was_not_set() -> None:
    event = message_class(_PROTO2)(name="x", scores=[3, 4])

    _, columns = decoder_of(_PROTO2).decode(pa.array([event.SerializeToString(), b""], pa.binary()))

    assert columns.to_pylist() == [
        {"name": "x", "level": None, "kind": None, "scores": [3, 4]},
        {"name": None, "level": None, "kind": None, "scores": []},
    ]


def test_an_edition_decodes_with_null_where_a_field_with_presence_was_not_set() -> None:
    event = message_class(_EDITION)(number=0, joined=[1, -2], expanded=[3, 4], kind=3, name="")
    event.again.number = 5

    _, columns = decoder_of(_EDITION).decode(pa.array([event.SerializeToString(), b""], pa.binary()))

    assert columns.to_pylist() == [
        {
            "number": 0,
            "always": 0,
            "joined": [1, -2],
            "expanded": [3, 4],
            "kind": "SOME",
            "name": "",
            "again": b"\x08\x05",
        },
        {"number": None, "always": 0, "joined": [], "expanded": [], "kind": None, "name": None, "again": None},
    ]


def test_a_number_with_two_names_has_the_first_one() -> None:
    _, columns = decoder_of(_ALIASES).decode(pa.array([b"\x08\x02", b"\x10\x02"], pa.binary()))

    assert columns.to_pylist() == [{"kind": "FIRST", "other": "NONE"}, {"kind": "NONE", "other": "FIRST"}]


def test_fields_without_content_get_no_column_because_parquet_can_not_keep_them() -> None:
    event = message_class(_WITH_EMPTY)(number=1)
    event.mark.SetInParent()
    event.marks.add()
    event.named_marks["a"].SetInParent()
    event.hollow.hollower.add()

    _, columns = decoder_of(_WITH_EMPTY).decode(pa.array([event.SerializeToString()], pa.binary()))

    assert columns.to_pylist() == [{"number": 1}]
    assert encode_parquet(pa.Table.from_batches([columns]), ())[0].size


def test_a_message_inside_one_of_its_own_type_is_its_bytes() -> None:
    node_class = message_class(_RECURSIVE)
    inner = node_class(name="inner", left=node_class(name="innermost"))
    outer = node_class(name="outer", left=inner, children=[inner], named={"k": inner})

    _, columns = decoder_of(_RECURSIVE).decode(pa.array([outer.SerializeToString()], pa.binary()))

    body = inner.SerializeToString()
    assert columns.to_pylist() == [{"name": "outer", "left": body, "children": [body], "named": [("k", body)]}]


def test_very_deep_nesting_does_not_crash() -> None:
    body = b""
    for _ in range(2_000):
        length = len(body)
        prefix = bytes([0x12]) + (bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7]))
        body = prefix + body

    good, _ = decoder_of(_RECURSIVE).decode(pa.array([body, b""], pa.binary()))

    assert 1 in good


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param(_GROUP, "Inner.part is a group", id="group"),
        pytest.param(_CLASHING, "differ", id="names that differ by case only"),
    ],
)
def test_a_schema_that_can_not_be_read_costs_only_its_own_records(text: str, word: str, tmp_path: Path) -> None:
    decoder = a_decoder(tmp_path, {1: text, 2: _RECURSIVE})

    for _ in range(2):
        decoded = decoder.decode(pa.array([frame(1, b""), frame(2, b""), frame(1, b"")], pa.binary()))

        assert decoded.rejects.rows == [0, 2]
        assert decoded.rejects.reasons == [DeadLetterReason.INVALID_SCHEMA] * 2
        assert word in decoded.rejects.details[0]
        assert [group.rows.tolist() for group in decoded.groups] == [[1]]


def test_a_schema_that_does_not_compile_costs_only_its_own_records(tmp_path: Path) -> None:
    decoder = a_decoder(tmp_path, {1: 'syntax = "proto3"; message {', 2: _RECURSIVE})

    decoded = decoder.decode(pa.array([frame(1, b""), frame(2, b"")], pa.binary()))

    assert decoded.rejects.reasons == [DeadLetterReason.INVALID_SCHEMA]
    assert "schema.proto:1" in decoded.rejects.details[0]


def test_files_may_import_files_that_import_files() -> None:
    texts = {
        "schema.proto": 'syntax = "proto3"; import "a/b.proto"; message Event { a.B b = 1; }',
        "a/b.proto": 'syntax = "proto3"; package a; import "c.proto"; message B { C c = 1; }',
        "c.proto": 'syntax = "proto3"; import "google/protobuf/any.proto"; message C { google.protobuf.Any any = 1; }',
    }

    names = [file.name for file in compile_sources(texts).file]

    assert names == ["google/protobuf/any.proto", "c.proto", "a/b.proto", "schema.proto"]


@pytest.mark.parametrize("path", ["/etc/other.proto", "../other.proto", "a/../../other.proto"])
def test_an_import_may_not_leave_its_folder(path: str) -> None:
    with pytest.raises(SchemaError, match="outside its own folder"):
        compile_sources({"schema.proto": 'syntax = "proto3";', path: ""})


@pytest.mark.parametrize("others_too", [False, True])
def test_a_schema_may_be_a_descriptor_in_base64_as_confluents_python_serializer_registers_it(others_too: bool) -> None:
    texts = {"schema.proto": 'syntax = "proto3"; import "a.proto"; message Event { A a = 1; }', "a.proto": _PART}
    *others, root = compile_sources(texts).file
    encoded = {"schema.proto": _base64(root)} | {file.name: _base64(file) for file in others if others_too}

    assert [file.name for file in compile_sources(texts | encoded).file] == ["a.proto", "schema.proto"]


def _base64(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def test_a_text_that_looks_like_base64_has_the_compilers_own_reason() -> None:
    with pytest.raises(SchemaError, match=r"schema\.proto:1:1: Expected top-level statement"):
        compile_sources({"schema.proto": base64.b64encode(b"no descriptor").decode()})


def test_imports_that_serializers_leave_out_are_known() -> None:
    names = ["google/type/date.proto", "confluent/type/decimal.proto", "confluent/types/decimal.proto"]
    imports = "".join(f'import "{name}";' for name in [*names, "confluent/meta.proto"])
    fields = 'google.type.Date day = 1; confluent.type.Decimal price = 2 [(confluent.field_meta).doc = "in gems"];'

    found = compile_sources({"schema.proto": f'syntax = "proto3"; {imports} message Event {{ {fields} }}'})

    assert {*names, "confluent/meta.proto"} < {file.name for file in found.file}


def test_a_missing_import_is_named() -> None:
    with pytest.raises(SchemaError, match=r"not_there\.proto"):
        compile_sources({"schema.proto": 'syntax = "proto3"; import "not_there.proto";'})
