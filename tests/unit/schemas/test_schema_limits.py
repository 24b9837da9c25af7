"""Whatever a schema says, only its own records suffer, at once, and for a reason that its author understands."""

import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import SchemaError
from gamelake.schemas.compiler import compile_sources
from gamelake.schemas.decoder import Decoder
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.registry import SchemaSource
from gamelake.schemas.schema_cache import SchemaCache
from tests.unit.schemas.protos import NO_WAIT, FakeRegistry, a_store, decoder_of, frame, message_class

_GOOD = 'syntax = "proto3"; message Event { int32 number = 1; }'
_OTHER = _GOOD.replace("Event", "Other")
_CLASH = 'syntax = "proto2"; message Event { optional int32 foo_bar = 1; optional int32 fooBar = 2; }'
_SEVERAL = "".join(f"string field_{number} = {number};" for number in range(1, 4_101))
_WIDE = f'syntax = "proto3"; message Event {{ {_SEVERAL} }}'
_UNUSED = f'syntax = "proto3"; message Wide {{ {_SEVERAL} }}'
_IMPORTING = 'syntax = "proto3"; import "wide.proto"; message Event { int32 number = 1; }'


def _nested(levels: int, label: str = "", fields: str = "int32 number = 1;") -> str:
    inner = (f"message M{i} {{ {fields} {label} M{i + 1} next = 2; }}" for i in range(levels - 1))
    return f'syntax = "proto3"; {"".join(inner)} message M{levels - 1} {{ int32 number = 1; }}'


def _doubling(levels: int) -> str:
    inner = (f"message M{i} {{ M{i + 1} left = 1; M{i + 1} right = 2; }}" for i in range(levels))
    return f'syntax = "proto3"; {"".join(inner)} message M{levels} {{ int32 number = 1; }}'


def _imports(name: str) -> dict[str, str]:
    return {"schema.proto": f'syntax = "proto3"; import "{name}"; message Event {{ int32 number = 1; }}', name: _OTHER}


def _decoder(folder: Path, texts: Mapping[str, str], limits: SchemaLimits | None = None) -> Decoder:
    registry = FakeRegistry({1: SchemaSource(texts=dict(texts)), 2: SchemaSource(texts={"schema.proto": _GOOD})})
    return Decoder(SchemaCache(registry, a_store(folder), NO_WAIT, limits=limits), limits)


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        pytest.param({"schema.proto": _WIDE}, "65535 bytes", id="4,100 texts"),
        pytest.param({"schema.proto": _IMPORTING, "wide.proto": _UNUSED}, "65535 bytes", id="4,100 texts, unused"),
        pytest.param({"schema.proto": _nested(31)}, "30 messages inside", id="nested"),
        pytest.param({"schema.proto": _nested(31, "repeated")}, "30 messages inside", id="nested lists"),
        pytest.param({"schema.proto": _nested(900)}, "30 messages inside", id="nested 900 times"),
        pytest.param({"schema.proto": _doubling(14)}, "2000 columns", id="doubled 14 times"),
        pytest.param({"schema.proto": _doubling(25)}, "2000 columns", id="doubled 25 times"),
        pytest.param({"schema.proto": _GOOD + "//" + "x" * 2**20}, "GAMELAKE_SCHEMA_MAX_BYTES", id="large"),
        pytest.param(_imports("a" * 1_001), "more than 1000 characters", id="a long name"),
        pytest.param(_imports("a/../../b.proto"), "outside its own folder", id="a folder above"),
        pytest.param(_imports("/etc/b.proto"), "outside its own folder", id="an absolute name"),
        pytest.param(_imports(""), "outside its own folder", id="no name"),
        pytest.param(_imports("a\0b.proto"), "not a file name", id="NUL"),
        pytest.param(_imports("a=b.proto"), "not a file name", id="a name that protoc would split"),
        pytest.param(_imports("\ud800.proto"), "not a file name", id="a lone surrogate in a name"),
        pytest.param({"schema.proto": _GOOD + "// \ud800"}, "lone surrogates", id="a lone surrogate"),
        pytest.param(
            {"schema.proto": 'syntax = "proto3"; message Event { int32 ' + "a" * 256 + " = 1; }"},
            "255",
            id="a long name of a field",
        ),
    ],
)
def test_a_schema_beyond_a_limit_costs_only_its_own_records(
    texts: Mapping[str, str], word: str, tmp_path: Path
) -> None:
    decoder = _decoder(tmp_path, texts)
    started = time.monotonic()

    for _ in range(2):
        decoded = decoder.decode(pa.array([frame(1, b""), frame(2, b"\x08\x01"), frame(1, b"")], pa.binary()))

        assert decoded.rejects.rows == [0, 2]
        assert decoded.rejects.reasons == [DeadLetterReason.INVALID_SCHEMA] * 2
        assert word in decoded.rejects.details[0]
        assert [group.columns.to_pylist() for group in decoded.groups] == [[{"number": 1}]]
    # To expand some of them would take minutes and all memory.
    assert time.monotonic() - started < 30


def test_two_fields_of_one_json_name_are_two_columns() -> None:
    event = message_class(_CLASH)(foo_bar=1, fooBar=2)

    _, columns = decoder_of(_CLASH).decode(pa.array([event.SerializeToString()], pa.binary()))

    assert columns.to_pylist() == [{"foo_bar": 1, "fooBar": 2}]


@pytest.mark.parametrize(("label", "levels"), [("", 30), ("repeated", 30), ("map<string, ", 20)])
def test_a_schema_within_the_limits_decodes(label: str, levels: int) -> None:
    text = _nested(levels, label)

    good, columns = decoder_of(text.replace(" next", "> next") if "map" in label else text).decode(
        pa.array([b"\x08\x01"], pa.binary())
    )

    assert good.tolist() == [0]
    assert columns.column("number").to_pylist() == [1]


@pytest.mark.parametrize(
    "name", ["a" * 300 + ".proto", "with space/b.proto", "é/b.proto", "a.proto/b.proto", "-.proto"]
)
def test_a_name_of_an_import_is_no_path(name: str) -> None:
    found = compile_sources({"a.proto": _GOOD} | _imports(name))

    assert [file.name for file in found.file] == [name, "schema.proto"]


def test_a_schema_of_too_many_files_does_not_compile() -> None:
    with pytest.raises(SchemaError, match="1001 files"):
        compile_sources({f"{number}.proto": _GOOD for number in range(1_001)})


def test_limits_are_settings(tmp_path: Path) -> None:
    limits = SchemaLimits(depth=2, columns=4)
    decoder = _decoder(tmp_path, {"schema.proto": _nested(3)}, limits)
    assert "2 messages inside" in decoder.decode(pa.array([frame(1, b"")], pa.binary())).rejects.details[0]

    wider = _decoder(tmp_path, {"schema.proto": _nested(3)}, SchemaLimits(depth=3, columns=5))
    assert len(wider.decode(pa.array([frame(1, b"")], pa.binary())).groups) == 1
