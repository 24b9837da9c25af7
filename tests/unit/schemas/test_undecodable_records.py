"""One bad record among many costs only itself, wherever it stands and however many there are."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.schemas.decoder import Decoder, MessageDecoder
from gamelake.schemas.framing import MessageType
from tests.unit.properties import examples
from tests.unit.schemas.protos import a_decoder, decoder_of, frame, message_class

_TEXT = """
syntax = "proto3";
package shop;
message Order { string name = 1; int64 amount = 2; repeated Line lines = 3; map<string, Line> named = 4; }
message Line { string product = 1; optional int32 count = 2; }
"""
_ORDER, _LINE = 0, 1
_BAD_BODIES = (
    b"\xff",  # a tag that never ends
    b"\x0a\x05ab",  # a text shorter than it says
    b"\x0a\x02\xff\xfe",  # a text that is not UTF-8
    b"\x1a\x03\x0a\x01\xff",  # the same one level down
    b"\x00\x01",  # field number 0
    b"\x0f",  # an unknown wire type
)


@pytest.fixture(scope="module")
def orders() -> MessageDecoder:
    return decoder_of(_TEXT)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    return a_decoder(tmp_path_factory.mktemp("lakehouse"), {7: _TEXT})


def _order(number: int) -> bytes:
    order = message_class(_TEXT)(name=f"order {number}", amount=number)
    order.lines.add(product="gem", count=number)
    order.named["first"].product = "coin"
    return bytes(order.SerializeToString())


@examples(80)
@given(st.lists(st.sampled_from([None, *_BAD_BODIES]), max_size=40))
def test_good_bodies_decode_whatever_else_is_in_the_batch(orders: MessageDecoder, bad: list[bytes | None]) -> None:
    bodies = [_order(number) if body is None else body for number, body in enumerate(bad)]

    good, columns = orders.decode(pa.array(bodies, pa.binary()))

    expected = [number for number, body in enumerate(bad) if body is None]
    assert good.tolist() == expected
    assert columns.column("amount").to_pylist() == expected
    assert [lines[0]["count"] for lines in columns.column("lines").to_pylist()] == expected


@examples(300)
@given(st.lists(st.binary(max_size=24), min_size=1, max_size=4))
def test_a_body_decodes_alone_as_it_does_among_others(orders: MessageDecoder, bodies: list[bytes]) -> None:
    together, columns = orders.decode(pa.array(bodies, pa.binary()))

    rows = dict(zip(together.tolist(), columns.to_pylist(), strict=True))
    for place, body in enumerate(bodies):
        alone, columns = orders.decode(pa.array([body], pa.binary()))
        assert len(alone) == (place in rows)
        assert columns.to_pylist() == [row for row in [rows.get(place)] if row is not None]


def test_each_reject_has_its_reason_and_a_detail_without_content(decoder: Decoder) -> None:
    values = [
        frame(7, _order(1)),
        frame(7, b"\xffsecret"),
        None,
        b"secret",
        b"",
        frame(7, b"", 5),
        frame(7, b"", 0, 1),
        frame(8, b""),
        frame(7, b"\x10\x03", _LINE),
    ]

    decoded = decoder.decode(pa.array(values, pa.binary()))

    reasons = zip(decoded.rejects.reasons, decoded.rejects.details, strict=True)
    rejects = dict(zip(decoded.rejects.rows, reasons, strict=True))
    assert rejects == {
        1: (DeadLetterReason.UNDECODABLE, "not a shop.Order of schema 7"),
        2: (DeadLetterReason.BAD_FRAMING, "the record has no value"),
        3: (DeadLetterReason.BAD_FRAMING, "the first byte is 115, not 0"),
        4: (DeadLetterReason.BAD_FRAMING, "the value has 0 bytes, fewer than a frame"),
        5: (DeadLetterReason.BAD_FRAMING, "the schema has no message at index [5]"),
        6: (DeadLetterReason.BAD_FRAMING, "the schema has no message at index [0, 1]"),
        7: (DeadLetterReason.UNKNOWN_SCHEMA, "the registry has no schema 8"),
    }
    assert {group.message_type: group.rows.tolist() for group in decoded.groups} == {
        MessageType(7, (_ORDER,)): [0],
        MessageType(7, (_LINE,)): [8],
    }


def test_the_schema_id_of_an_undecodable_record_is_still_known(decoder: Decoder) -> None:
    decoded = decoder.decode(pa.array([frame(7, b"\xff"), b"x", frame(8, b"")], pa.binary()))

    assert {message_type.schema_id: rows.tolist() for message_type, rows in decoded.framed} == {7: [0], 8: [2]}


_VALUES = st.none() | st.binary(max_size=20) | st.binary(max_size=12).map(lambda body: frame(7, body))


@examples(150)
@given(st.lists(_VALUES, max_size=10))
def test_every_row_of_any_batch_is_in_one_group_or_among_the_rejects(
    decoder: Decoder, values: list[bytes | None]
) -> None:
    decoded = decoder.decode(pa.array(values, pa.binary()))

    rows = [*decoded.rejects.rows, *(row for group in decoded.groups for row in group.rows.tolist())]
    assert sorted(rows) == list(range(len(values)))
    assert all(len(group.rows) == len(group.columns) for group in decoded.groups)


def test_a_batch_of_bad_records_only_has_no_groups(tmp_path: Path) -> None:
    decoder = a_decoder(tmp_path, {7: _TEXT})

    decoded = decoder.decode(pa.array([frame(7, body) for body in _BAD_BODIES], pa.binary()))

    assert decoded.groups == []
    assert decoded.rejects.reasons == [DeadLetterReason.UNDECODABLE] * len(_BAD_BODIES)
