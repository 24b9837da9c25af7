"""What events must be beyond their types, all of them at once; see `services.gateway.checking` for one by one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.wire.framing import Flags, Ints

_NANOS_PER_SECOND = 1_000_000_000
_OTHER, _HEX, _DASH = 0, 1, 2
_KINDS = np.full(256, _OTHER, np.uint8)
_KINDS[list(b"0123456789abcdefABCDEF")] = _HEX
_KINDS[ord("-")] = _DASH
_UUID = np.array([_DASH if place in (8, 13, 18, 23) else _HEX for place in range(36)], np.uint8)


def may_not_pass(events: pa.RecordBatch, earliest: float, latest: float) -> Flags:
    """Which events lack a text, or have no time in these bounds (seconds since 1970); of game names it says nothing."""
    good = _are_uuids(events.column("event_id"))
    good &= _lengths(events.column("event_name")) > 0
    good &= _lengths(events.column("gamer_id")) > 0
    good &= _are_between(events.column("event_time"), earliest, latest)
    return ~good


def _are_between(times: pa.TimestampArray, earliest: float, latest: float) -> Flags:
    nanos = pc.fill_null(times.view(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    seconds = nanos // _NANOS_PER_SECOND
    return np.asarray((seconds >= earliest) & (seconds <= latest))


def _offsets(texts: pa.StringArray) -> Ints:
    raw = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return raw.astype(np.int64)


def _lengths(texts: pa.StringArray) -> Ints:
    return np.diff(_offsets(texts))


def _are_uuids(texts: pa.StringArray) -> Flags:
    good = _lengths(texts) == len(_UUID)
    rows = np.flatnonzero(good)
    if len(rows):
        chosen = texts if good.all() else texts.take(pa.array(rows))
        offsets = _offsets(chosen)
        characters = np.frombuffer(chosen.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        good[rows] = (_KINDS[characters].reshape(-1, len(_UUID)) == _UUID).all(axis=1)
    return np.asarray(good)
