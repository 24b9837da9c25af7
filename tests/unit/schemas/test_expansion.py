"""Records that take many times their bytes once they are decoded are refused before they are, and all others decode."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import SchemaError
from gamelake.schemas.decoder import Decoder
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.schema_cache import SchemaCache
from tests.support.process_table import peak_mib
from tests.unit.properties import examples
from tests.unit.schemas.protos import NO_WAIT, FakeRegistry, a_decoder, a_store, decoder_of, frame, schema, sized

_MIB = 2**20
_DOUBLES = " ".join(f"double f{number} = {number};" for number in range(1, 1_001))
_FEW_DOUBLES = " ".join(f"double f{number} = {number};" for number in range(1, 5))
_LONG = "N" * 250


def _proto(fields: str, inner: str = _DOUBLES) -> str:
    return (
        f'syntax = "proto3"; message Event {{ string name = 1; {fields} }} message Item {{ {inner} }} '
        f"message Items {{ repeated Item items = 1; }} enum Kind {{ {_LONG} = 0; }}"
    )


_ITEMS = sized(2, b"") * 50_000
# How a body of 100 to 200 KB takes hundreds of MiB.
_EXPANDING = {
    "a list of messages": (_proto("repeated Item items = 2;"), _ITEMS),
    "a map of messages": (_proto("map<int64, Item> items = 2;"), _ITEMS),
    "a list inside a message": (_proto("Items items = 2;"), sized(2, sized(1, b"") * 50_000)),
    "a list in pieces of one message": (_proto("Items items = 2;"), sized(2, sized(1, b"") * 10) * 5_000),
    "lists inside a list": (_proto("repeated Items items = 2;"), sized(2, sized(1, b"") * 10) * 5_000),
    "tags that are longer than they need to be": (_proto("repeated Item items = 2;"), b"\x92\x80\x00\x00" * 50_000),
    "names of an enum": (_proto("repeated Kind kinds = 2;"), sized(2, b"\0" * 200_000)),
    "names of an enum, each by itself": (_proto("repeated Kind kinds = 2;"), b"\x10\0" * 200_000),
}


@pytest.mark.parametrize(("text", "body"), _EXPANDING.values(), ids=_EXPANDING)
@pytest.mark.parametrize("end", [b"", b"\xff"], ids=["whole", "cut off"])
def test_a_record_that_expands_is_refused_within_little_memory_and_the_others_decode(
    text: str, body: bytes, end: bytes, tmp_path: Path
) -> None:
    decoder = a_decoder(tmp_path, {1: text})
    good = frame(1, sized(1, b"good"))
    decoder.decode(pa.array([good], pa.binary()))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = peak_mib({os.getpid()})

    decoded = decoder.decode(pa.array([good, frame(1, body + end), good], pa.binary()))

    assert peak_mib({os.getpid()}) - before < 30
    assert decoded.rejects.rows == [1]
    assert decoded.rejects.reasons == [DeadLetterReason.UNDECODABLE if end else DeadLetterReason.RECORD_TOO_LARGE]
    assert end or "more than 32 MiB (GAMELAKE_RECORD_MAX_MIB)" in decoded.rejects.details[0]
    assert [group.columns.column("name").to_pylist() for group in decoded.groups] == [["good", "good"]]


def test_the_limit_of_a_record_is_a_setting(tmp_path: Path) -> None:
    text, body = _proto("repeated Item items = 2;"), sized(2, b"") * 200
    registry = FakeRegistry({1: schema(text)})
    reasons = []
    for record_bytes in (1, 2):
        limits = SchemaLimits(record_bytes=record_bytes * _MIB)
        decoder = Decoder(SchemaCache(registry, a_store(tmp_path), NO_WAIT, limits=limits), limits)
        reasons.append(decoder.decode(pa.array([frame(1, body)], pa.binary())).rejects.reasons)

    assert reasons == [[DeadLetterReason.RECORD_TOO_LARGE], []]


def test_a_schema_whose_empty_record_is_over_the_limit_is_refused() -> None:
    with pytest.raises(SchemaError, match="GAMELAKE_RECORD_MAX_MIB"):
        decoder_of(_proto("Item item = 2;"), limits=SchemaLimits(record_bytes=7_000))


def test_a_name_of_an_enum_is_as_short_as_a_name_of_a_field() -> None:
    with pytest.raises(SchemaError, match="more than 255 characters"):
        decoder_of(f'syntax = "proto3"; message Event {{ Kind kind = 1; }} enum Kind {{ {"N" * 256} = 0; }}')


@pytest.mark.parametrize("fields", ["repeated Item items = 2;", "map<int64, Item> items = 2;"])
def test_records_that_take_much_memory_together_decode_in_portions(fields: str, tmp_path: Path) -> None:
    decoder = a_decoder(tmp_path, {1: _proto(fields), 2: _proto("")})
    # Each has a thousand columns of doubles, and more in all than one portion takes.
    bodies = [sized(1, b"%d" % number) + sized(2, b"") * 2_000 for number in range(20)]
    values = [each for number, body in enumerate(bodies) for each in (frame(1, body), frame(2, b"\x0a\x01n"), b"bad")]
    names: list[tuple[int, str]] = []
    bad: list[int] = []
    firsts: list[int] = []
    records = 0

    for first, portion in decoder.portions(pa.array(values, pa.binary())):
        assert first == records
        records += portion.records
        firsts.append(first)
        assert sum(group.columns.nbytes for group in portion.groups) <= 100 * _MIB
        bad.extend(first + row for row in portion.rejects.rows)
        for group in portion.groups:
            names.extend(zip(first + group.rows, group.columns.column("name").to_pylist(), strict=True))

    assert records == len(values)
    assert len(firsts) > 2
    assert bad == list(range(2, 60, 3))
    assert sorted(names) == [
        (row, str(row // 3) if row % 3 == 0 else "n") for row in range(len(values)) if row % 3 != 2
    ]


def test_ordinary_records_are_one_portion(tmp_path: Path) -> None:
    text = Path("contracts/proto/v3/game_event.proto").read_text(encoding="utf-8")
    decoder = a_decoder(tmp_path, {1: text})

    found = list(decoder.portions(pa.array([frame(1, sized(1, b"x" * 1_000))] * 16_000, pa.binary())))

    assert [first for first, _ in found] == [0]


_INNER = st.recursive(
    st.binary(max_size=6),
    lambda inner: st.lists(st.tuples(st.integers(1, 6), inner).map(lambda part: sized(*part)), max_size=4).map(
        b"".join
    ),
    max_leaves=20,
)
_ANY = (
    'syntax = "proto3"; message Event { repeated Item items = 1; map<string, Item> map = 2; Items one = 3; '
    "repeated Kind kinds = 4; repeated int64 numbers = 5; repeated string texts = 6; } "
    f"message Item {{ {_FEW_DOUBLES} repeated Items items = 5; Kind kind = 6; }} "
    "message Items { repeated Item items = 1; map<int32, Kind> kinds = 2; Event event = 3; string text = 4; } "
    "enum Kind { A_LONG_NAME_OF_A_NUMBER = 0; }"
)
_decoder = decoder_of(_ANY)


@examples(200)
@given(st.lists(_INNER, min_size=1, max_size=8))
def test_no_record_takes_more_than_was_foretold(bodies: list[bytes]) -> None:
    array = pa.array(bodies, pa.binary())
    foretold = _decoder.decoded_bytes(array)

    good, columns = _decoder.decode(array)

    assert (foretold[good] > 0).all()
    # Arrow has one offset more than elements, and rounds bitmaps up to bytes, for each column.
    assert np.sum(foretold[good]) + 8 * 200 >= columns.nbytes
    assert _decoder.most_bytes(array) >= np.sum(foretold)
