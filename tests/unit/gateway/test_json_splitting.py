"""A body that is not JSON as a whole is split between its events as JSON's decoder would split it."""

import json
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.errors import BodyTooLargeError, RefusedError, UnreadableBodyError
from services.gateway.events import json_splitting
from services.gateway.events.json_splitting import event_texts
from tests.unit.properties import examples

MANY = 100
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

    assert event_texts(body, MANY) == [bytes(each) for each in msgspec.json.decode(body, type=_Body).events]


@examples(300)
@given(st.lists(st.sampled_from([b"\\", b'"', b"[", b"]", b"{", b"}", b",", b":", b" ", b"a", b"\xff"]), max_size=20))
def test_any_bytes_are_split_or_refused(parts: list[bytes]) -> None:
    inner = b"".join(parts)

    with suppress(RefusedError):
        texts = event_texts(b'{"events":[%s]}' % inner, MANY)
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
        event_texts(body, MANY)


def test_a_body_with_too_many_events_is_refused() -> None:
    assert len(event_texts(b'{"events":[%s]}' % b",".join([b"NaN"] * MANY), MANY)) == MANY

    with pytest.raises(BodyTooLargeError):
        event_texts(b'{"events":[%s]}' % b",".join([b"NaN"] * (MANY + 1)), MANY)


def test_a_body_of_very_many_quotes_is_refused_before_they_take_the_time_of_others() -> None:
    with pytest.raises(BodyTooLargeError):
        event_texts(b'{"events":[%s]}' % (b'"' * (2**20 + 2)), MANY)


@pytest.mark.parametrize("piece", [b'"', b"\\\\", b"[]", b'"",'])
def test_splitting_a_body_of_quotes_or_brackets_takes_little_more_memory_than_the_body(piece: bytes) -> None:
    body = b'{"events":[[%s""]]}' % (piece * (2**20 // len(piece)))

    tracemalloc.start()
    with suppress(RefusedError):
        event_texts(body, MANY)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2 * len(body) + 4 * 2**20


@examples(300)
@given(st.lists(st.sampled_from([b"\\", b'"', b"[", b"]", b",", b"a"]), max_size=40), st.integers(1, 7))
def test_the_size_of_the_blocks_changes_nothing(parts: list[bytes], size: int) -> None:
    body = b'{"events":[%s]}' % b"".join(parts)

    with pytest.MonkeyPatch.context() as patched:
        at_once = split_or_refused(body)
        patched.setattr(json_splitting, "_BLOCK_BYTES", size)
        assert split_or_refused(body) == at_once


def split_or_refused(body: bytes) -> Sequence[bytes] | type[RefusedError]:
    try:
        return event_texts(body, MANY)
    except RefusedError as error:
        return type(error)
