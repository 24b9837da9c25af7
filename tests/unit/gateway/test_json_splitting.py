"""A body that is not JSON as a whole is split between its events as JSON's decoder would split it."""

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.errors import BodyTooLargeError, RefusedError, UnreadableBodyError
from services.gateway.json_splitting import event_texts
from tests.unit.properties import examples

_TEXTS = st.text(st.sampled_from('\\"[]{},: \n\té😀a'), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=10,
)


class _Body(msgspec.Struct):
    events: list[msgspec.Raw]


@examples(200)
@given(st.lists(_VALUES, max_size=5), st.booleans(), st.sampled_from([None, 0, 1, "\t"]))
def test_json_is_split_as_its_decoder_splits_it(events: list[object], escaped: bool, indent: str | int | None) -> None:
    body = json.dumps({"events": events}, ensure_ascii=escaped, indent=indent).encode()

    assert event_texts(body) == [bytes(each) for each in msgspec.json.decode(body, type=_Body).events]


@examples(300)
@given(st.lists(st.sampled_from([b"\\", b'"', b"[", b"]", b"{", b"}", b",", b":", b" ", b"a", b"\xff"]), max_size=20))
def test_any_bytes_are_split_or_refused(parts: list[bytes]) -> None:
    inner = b"".join(parts)

    with suppress(RefusedError):
        texts = event_texts(b'{"events":[%s]}' % inner)
        assert b",".join(texts).replace(b" ", b"") == inner.replace(b" ", b"")
        assert all(texts)


@pytest.mark.parametrize(
    "body",
    [
        b'{"events":[{"a":1},{"b":"]}',
        b'{"events":[{"a":1},{"b":[1}]}',
        b'{"events":[{"a":NaN}],"more":1}',
        b'{"events":[{"a":NaN}]} {}',
        b'{"events":[{"a":NaN},]}',
        b'{"events":[,{"a":NaN}]}',
        b'{"events":[NaN]',
        b'{"events":[NaN}',
        b'[{"a":NaN}]',
        b'{"event":[NaN]}',
        b'{"events":NaN}',
        b'{"events":["\\"]}',
        b"]}",
        b"",
    ],
)
def test_a_body_with_unclear_ends_of_events_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        event_texts(body)


def test_a_body_of_very_many_quotes_is_refused_before_they_need_memory() -> None:
    with pytest.raises(BodyTooLargeError):
        event_texts(b'{"events":[%s]}' % (b'"' * (2**20 + 2)))
