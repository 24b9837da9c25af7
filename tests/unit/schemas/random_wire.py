"""Random bytes on the wire of any Protobuf type, for Hypothesis: legal ones that libraries seldom or never write.

Fields come in any order and several times, lists of numbers as one field and as many, numbers as varints longer than
they need be, fields with another wire type or number than declared, entries of maps without key or value.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from tests.unit.schemas.expected_columns import Field
from tests.unit.schemas.protos import sized, varint

_VARINT, _FIXED64, _LENGTH, _START, _END, _FIXED32 = range(6)
_VARINTS = {
    FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_ENUM,
}  # fmt: skip
_WIRE = (
    dict.fromkeys(_VARINTS, _VARINT)
    | dict.fromkeys(
        (FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64, FieldDescriptor.TYPE_DOUBLE), _FIXED64
    )
    | dict.fromkeys((FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32, FieldDescriptor.TYPE_FLOAT), _FIXED32)
)
# The Protobuf package reads no length of more than five bytes, so only values are longer than they need be.
_NUMBERS = st.one_of(
    st.integers(0, 3), st.integers(-3, 300), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**64 - 1)
)
_TEXTS = st.sampled_from([b"", b"a", b"k", b"a\0b", "é😀".encode(), b"x" * 130])
_NOT_UTF_8 = st.sampled_from([b"\xff", b"a\xc3", b"\xed\xa0\x80"])
_FIXED = {
    _FIXED64: st.sampled_from([b"\0" * 8, b"\0" * 7 + b"\x80", b"\x01\0\0\0\0\0\xf8\x7f", b"\xff" * 8, b"\1" * 8]),
    _FIXED32: st.sampled_from([b"\0" * 4, b"\0" * 3 + b"\x80", b"\x01\0\xc0\x7f", b"\xff" * 4, b"\1" * 4]),
}
# Python has no times far away.
_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")
_DEEPEST = 4
_UNKNOWN = (998, 2**29 - 1)


def wire(descriptor: Descriptor, *, cut: bool = False) -> st.SearchStrategy[bytes]:
    """Bodies of a type.

    Args:
        descriptor: the type.
        cut: lists of numbers in one field may be cut off, so that a body may be none of the type.
    """
    return _bodies(descriptor, 0, cut)


@st.composite
def _bodies(draw: st.DrawFn, descriptor: Descriptor, depth: int, cut: bool) -> bytes:
    fields = [field for field in descriptor.fields if depth < _DEEPEST or field.message_type is None]
    if not fields:
        return b""
    chosen = draw(st.lists(st.sampled_from(fields), max_size=5 if depth else 8))
    is_entry = descriptor.GetOptions().map_entry
    parts = [draw(_part(field, depth, cut)) for field in chosen]
    # The package takes an entry of a map with an unknown field for unknown as a whole.
    if not is_entry and draw(st.integers(0, 9)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(_unknown(draw(st.sampled_from(_UNKNOWN)))))
    return b"".join(parts)


@st.composite
def _part(draw: st.DrawFn, field: Field, depth: int, cut: bool) -> bytes:
    in_entry = field.containing_type.GetOptions().map_entry
    if not in_entry and draw(st.integers(0, 19)) == 0:
        expected = {_WIRE.get(field.type, _START if field.type == field.TYPE_GROUP else _LENGTH)}
        if field.is_repeated:
            expected.add(_LENGTH)
        return draw(_unknown(field.number, expected))
    if field.type == FieldDescriptor.TYPE_GROUP:
        inner = draw(_bodies(field.message_type, depth + 1, cut))
        return varint(field.number << 3 | _START) + inner + varint(field.number << 3 | _END)
    if field.message_type is not None:
        return sized(field.number, draw(_bodies(field.message_type, depth + 1, cut)))
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        texts = _TEXTS | _NOT_UTF_8 if field.type == FieldDescriptor.TYPE_BYTES else _TEXTS
        return sized(field.number, draw(texts))
    kind = _WIRE[field.type]
    value = _FIXED[kind] if kind in _FIXED else _varints(field)
    if field.is_repeated and draw(st.booleans()):
        joined = b"".join(draw(st.lists(value, max_size=3)))
        if cut and draw(st.booleans()):
            joined = joined[:-1]
        return sized(field.number, joined)
    return varint(field.number << 3 | kind) + draw(value)


@st.composite
def _varints(draw: st.DrawFn, field: Field) -> bytes:
    if field.enum_type is not None:
        # A number that a closed enum does not name is unknown to the package.
        encoded = varint(draw(st.sampled_from([each.number for each in field.enum_type.values])))
    elif field.containing_type.full_name in _TIMES:
        encoded = varint(draw(st.integers(0, 999_999_999)))
    else:
        encoded = varint(draw(_NUMBERS))
    longer = draw(st.sampled_from([0, 0, 0, 1, 3]))
    if longer and len(encoded) + longer <= 10:
        encoded = encoded[:-1] + bytes([encoded[-1] | 0x80]) + b"\x80" * (longer - 1) + b"\0"
    return encoded


@st.composite
def _unknown(draw: st.DrawFn, number: int, but: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
    kinds = [each for each in (_VARINT, _FIXED64, _LENGTH, _START, _FIXED32) if each not in but]
    kind = draw(st.sampled_from(kinds))
    content = {
        _VARINT: b"\x81\x01",
        _FIXED64: b"\1" * 8,
        _LENGTH: b"\x02\x08\x01",
        _START: varint(5 << 3 | _START) + b"\x08\x01" + varint(5 << 3 | _END) + varint(number << 3 | _END),
        _FIXED32: b"\1" * 4,
    }[kind]
    return varint(number << 3 | kind) + content
