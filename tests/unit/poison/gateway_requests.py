"""Hostile requests to the gateway, and bodies with good and bad events of another game."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import zstandard
from hypothesis import strategies as st

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from services.gateway.events.validation import JSON, PROTOBUF
from tests.unit.gateway.damaged_events import joined
from tests.unit.gateway.events import GAME, an_event
from tests.unit.gateway.worlds import BODIES, CIRCUMSTANCES, Body, Circumstances

MIB = 2**20
ATTACKER, NEIGHBOUR = "bingo_harbor", "castle_clash_saga"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileRequest:
    """A request as a client sends it.

    Attributes:
        chunks: of the body.
        headers: replace those of a right request; without a content length the body comes in chunks.
        is_cut: the client closes the connection after the chunks.
    """

    chunks: Sequence[bytes]
    headers: Mapping[str, str | None]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAttack:
    """Requests that are sent at the same time.

    Attributes:
        bodies: with good and bad events of one game, each with its content encoding.
        hostile: requests of another game.
        expanding: how many requests of that game expand in memory, and which ones.
        circumstances: of the process.
        unconfirmed: how many of the first sends Kafka does not confirm.
    """

    bodies: Sequence[tuple[Body, str]] = ()
    hostile: Sequence[HostileRequest] = ()
    expanding: tuple[int, str] = (0, "a name")
    circumstances: Circumstances = field(default_factory=Circumstances)
    unconfirmed: int = 0


def compressed(content: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(content, mtime=0)
    return zstandard.compress(content) if encoding == "zstd" else content


def _events(count: int, **fields: object) -> bytes:
    events = [an_event(gamer_id=f"x-{number}") | fields for number in range(count)]
    return json.dumps({"events": events}, separators=(",", ":")).encode()


# Bodies of a few kilobytes, by the part that expands in them.
_EXPANDING: Mapping[str, Callable[[], bytes]] = {
    "a free text": lambda: _events(1, personal={"free_text": "t" * (MIB - 2_000)}),
    "a name": lambda: _events(1, gamer_id="n" * (MIB - 2_000)),
    "free texts": lambda: _events(120, personal={"free_text": "t" * 8_000}),
    "attributes": lambda: _events(450, attributes={str(number): "" for number in range(30)}),
    "no JSON": lambda: b'{"events":[{"a":NaN},{"b":"%s"}]}' % (b'\\"' * 250_000),
    "lists": lambda: b'{"events":[%s]}' % b",".join([b'{"experiment_ids":[%s]}' % b",".join([b'""'] * 36)] * 480),
    "objects": lambda: b'{"events":[%s]}' % b",".join([b"{}"] * 300_000),
    "nesting": lambda: b'{"events":' * 100_000,
    "zeros": lambda: bytes(8 * MIB),
    "messages": lambda: joined(PROTOBUF, [b""] * 500_000),
    "a message": lambda: joined(PROTOBUF, [b"\x0a\xc0\x84\x3d" + bytes(10**6)]),
}


@cache
def expanding_request(kind: str) -> HostileRequest:
    content_type = PROTOBUF if "message" in kind else JSON
    return HostileRequest(
        chunks=[gzip.compress(_EXPANDING[kind]())], headers={"content-type": content_type, "content-encoding": "gzip"}
    )


def _cut(end: int, frame: bytes) -> bytes:
    return frame[:end]


_ENCODINGS = st.sampled_from(["identity", "gzip", "zstd"])
_VALID = b'{"events":[%s]}' % json.dumps(an_event(gamer_id="attacker")).encode()
_CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([
        b"", b"{}", b"[]", b"null", b'{"events":{}}', b'{"events":[]}', b'{"events":[,]}', b'{"events":[}]}',
        b'{"events":[]}{"events":[]}', b'{"a":1,"events":[{}]}', b'{"events":[{}],"events":[1]}', b"\xff" * 40,
        b'\xef\xbb\xbf{"events":[]}',
        b'{"events":"' + b"[" * 9_000, b"\x80" * 20, b"\xff\xff\xff\xff\x0f", b"\x00" * 2_000, _VALID * 2,
        _VALID.decode().encode("utf-16"),
    ]),
    st.integers(0, len(_VALID)).map(lambda end: _VALID[:end]),
    st.builds(lambda at, some: _VALID[:at] + some + _VALID[at:], st.integers(0, len(_VALID)), st.binary(max_size=4)),
)  # fmt: skip
# A frame that is cut, has something after its end, or comes twice.
_FRAMES = st.sampled_from(
    [lambda frame: frame * 2, lambda frame: frame + b"x", *[partial(_cut, end) for end in (1, 5, 20, 40)]]
)
_TEXTS = st.one_of(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12), st.just("x" * 9_000))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.one_of(
            st.sampled_from([JSON, PROTOBUF, "", "application/json; charset=latin-1", "APPLICATION/JSON", "text/html"]),
            _TEXTS,
        ),
        "content-encoding": st.one_of(_ENCODINGS, st.sampled_from(["", "GZIP", "gzip, gzip", "deflate", "br"]), _TEXTS),
        "content-length": st.one_of(
            st.none(), st.sampled_from(["0", "1", "9" * 20, "9" * 5_000, "-1", "1e3", "\u00b2"]), _TEXTS
        ),
        KEY_HEADER: st.one_of(st.sampled_from(["", GAME, "nobody", "x\ny", f"{GAME} "]), _TEXTS),
        TIMESTAMP_HEADER: st.one_of(st.sampled_from(["", "0", "-1", "9" * 12, "9" * 400, "1.5"]), _TEXTS),
        SIGNATURE_HEADER: st.one_of(st.sampled_from(["", "0" * 64, "0" * 9_000]), _TEXTS),
    },
)


def hostile_requests(
    contents: st.SearchStrategy[bytes], headers: st.SearchStrategy[Mapping[str, str | None]]
) -> st.SearchStrategy[HostileRequest]:
    """Return requests with these contents, compressed, damaged, in chunks and cut, and with these headers."""
    stored = st.builds(
        lambda content, encoding, change: change(compressed(content, encoding)),
        contents,
        _ENCODINGS,
        st.one_of(st.just(bytes), _FRAMES),
    )
    return st.builds(
        lambda content, cuts, headers, is_cut: HostileRequest(
            chunks=[content[start:end] for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True)],
            headers=headers,
            is_cut=is_cut,
        ),
        st.one_of(contents, stored),
        st.lists(st.integers(0, 60), max_size=3),
        headers,
        st.sampled_from([False, False, False, True]),
    )


GATEWAY_ATTACKS = st.builds(
    GatewayAttack,
    bodies=st.lists(st.tuples(BODIES, _ENCODINGS), max_size=3),
    hostile=st.lists(hostile_requests(_CONTENTS, HEADERS), max_size=8),
    expanding=st.tuples(st.sampled_from([0, 0, 1, 4, 60]), st.sampled_from(list(_EXPANDING))),
    circumstances=CIRCUMSTANCES,
    unconfirmed=st.sampled_from([0, 0, 0, 1, 2]),
)
