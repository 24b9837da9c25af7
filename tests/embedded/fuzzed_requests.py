"""Invalid requests: random bytes, valid bodies that were damaged, wrong headers."""

import gzip
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import zstandard
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from gamelake.schemas.event_schemas import load_schema
from services.sdk.batches import delimited
from tools.embedded.service import REPOSITORY

Change = Callable[[bytes], st.SearchStrategy[bytes]]

# In all valid bodies, to be searched for afterwards.
MARK = "fuzz-was-here"

_EVENT = GetMessageClass(load_schema(REPOSITORY / "contracts/submitted/v4", 4).message)
_NOW = datetime.now(UTC)
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"
_COMPRESSORS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}

_rarely = st.integers(0, 9).map(lambda number: number > 7)
_names = st.sampled_from([field.name for field in _EVENT.DESCRIPTOR.fields])
_numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_values = st.recursive(
    st.none() | st.booleans() | _numbers | st.text(max_size=20) | st.just(MARK) | st.just(_NOW.isoformat()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_names | st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_header_text = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=80)


@dataclass(frozen=True, slots=True)
class FuzzedRequest:
    """A body and the headers that replace the default ones, with _ for -."""

    body: bytes
    headers: Mapping[str, str]


@st.composite
def fuzzed_requests(draw: st.DrawFn) -> FuzzedRequest:
    """Any request; most have a valid signature, so that later checks see them."""
    content_type, content = draw(
        st.tuples(st.just(_JSON), _json_bodies)
        | st.tuples(st.just(_PROTOBUF), protobuf_bodies(_damaged))
        | st.tuples(st.sampled_from([_JSON, _PROTOBUF]) | _header_text, st.binary(max_size=500))
    )
    encoding = draw(st.sampled_from(["", "", "gzip", "zstd", "identity"]) | _header_text)
    headers = {"content_type": content_type, "content_encoding": encoding}
    if draw(_rarely):
        wrong = st.sampled_from(["gamelake_key", "gamelake_timestamp", "gamelake_signature"])
        headers |= draw(st.dictionaries(wrong, _header_text, min_size=1, max_size=2))
    return FuzzedRequest(draw(_damaged(compressed(draw(_damaged(content)), encoding))), headers)


def compressed(content: bytes, encoding: str) -> bytes:
    """The content under a content encoding; unchanged under an unknown one."""
    return _COMPRESSORS.get(encoding, bytes)(content)


def as_protobuf(events: Sequence[Mapping[str, object]]) -> bytes:
    """Events with their times as text, in length-delimited Protobuf."""
    timed = ({**event, "event_time": datetime.fromisoformat(str(event["event_time"]))} for event in events)
    return b"".join(delimited(_EVENT(**event).SerializeToString()) for event in timed)


@st.composite
def _damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The content, mostly unchanged; else with bytes removed, inserted or duplicated."""
    if not draw(_rarely):
        return content
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 40)))
        new = draw(st.binary(max_size=8) | st.just(content[start:end] * 2))
        content = content[:start] + new + content[end:]
    return content


def _valid_event(event_id: uuid.UUID) -> dict[str, object]:
    return {
        "event_id": str(event_id),
        "event_name": "tap",
        "event_time": _NOW.isoformat(),
        "gamer_id": MARK,
        "event_params": {"device_id": MARK, "level": 3},
        "personal": {"free_text": MARK},
    }


_json_events = st.builds(
    lambda event_id, changes: _valid_event(event_id) | changes,
    st.uuids(),
    st.dictionaries(_names | st.text(max_size=8), _values, max_size=2),
)
_json_bodies = st.builds(
    lambda events, changes: json.dumps({"events": events} | changes).encode(),
    st.lists(_json_events | _values, max_size=5),
    st.just({}) | st.dictionaries(st.text(max_size=8), _values, max_size=1),
)


@st.composite
def protobuf_bodies(draw: st.DrawFn, change: Change) -> bytes:
    """Length-delimited Protobuf events, each changed by `change`."""
    body = b""
    for event_id in draw(st.lists(st.uuids(), max_size=5)):
        event = _EVENT(**_valid_event(event_id) | {"event_time": _NOW})
        body += delimited(draw(change(event.SerializeToString())))
    return body
