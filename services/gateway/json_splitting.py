"""Splits a body into the texts of its events if one of the events is not JSON.

Cutting a text within an emoji leaves half of a surrogate pair, and dividing by zero gives NaN. An event with either is
not JSON (RFC 8259), and a JSON decoder stops there. Quotes and brackets still show where the event ends.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gamelake.schemas.framing import Flags, Ints
from services.gateway.errors import BodyTooLargeError, UnreadableBodyError

_SPACE = b" \t\n\r"
_OPENING = re.compile(rb'[ \t\n\r]*\{[ \t\n\r]*"events"[ \t\n\r]*:[ \t\n\r]*\[')
_CLOSING = re.compile(rb"\][ \t\n\r]*\}[ \t\n\r]*")

# The characters that decide where an event ends; all others are 0.
_QUOTE, _BACKSLASH, _COMMA, _OPEN, _CLOSE = 1, 2, 3, 4, 5
_MARKS = np.zeros(256, np.uint8)
_MARKS[list(b'"\\,')] = _QUOTE, _BACKSLASH, _COMMA
_MARKS[list(b"[{")] = _OPEN
_MARKS[list(b"]}")] = _CLOSE
# 5,000 events of 20 fields have half as many. Splitting takes about 40 bytes of memory per mark.
_MOST_MARKS = 2**20


def event_texts(body: bytes) -> Sequence[bytes]:
    """Return the text of each event of `{"events": [...]}`, without checking that the text is JSON.

    Raises:
        UnreadableBodyError: the body is not such an object, or its quotes and brackets don't match.
        BodyTooLargeError: the body has too many quotes, brackets and commas to be split.
    """
    inner = _list_of_events(body)
    if not inner.strip(_SPACE):
        return []
    commas = _commas_between(np.frombuffer(inner, np.uint8))
    starts, ends = [0, *(commas + 1).tolist()], [*commas.tolist(), len(inner)]
    texts = [inner[start:end].strip(_SPACE) for start, end in zip(starts, ends, strict=True)]
    if not all(texts):
        raise _unreadable()
    return texts


def _list_of_events(body: bytes) -> bytes:
    """Return the text between the brackets of the list."""
    opening = _OPENING.match(body)
    closing = _CLOSING.fullmatch(body, max(body.rfind(b"]"), 0))
    if opening is None or closing is None or closing.start() < opening.end():
        raise _unreadable()
    return body[opening.end() : closing.start()]


def _commas_between(text: npt.NDArray[np.uint8]) -> Ints:
    """Return the indexes (int64) of the commas outside of all texts, objects and lists."""
    marks = _MARKS[text]
    if np.count_nonzero(marks) > _MOST_MARKS:
        raise BodyTooLargeError("the body is not JSON, and too large to find the events that are")
    places = np.flatnonzero(marks)
    kinds = marks[places]
    quotes = (kinds == _QUOTE) & ~_are_escaped(kinds, places)
    # A mark is in a text if the number of quotes up to and including the mark is odd.
    is_outside = np.cumsum(quotes) % 2 == 0
    steps = np.where(kinds == _OPEN, 1, np.where(kinds == _CLOSE, -1, 0)) * is_outside
    depths = np.cumsum(steps)
    if len(depths) and (depths.min() < 0 or depths[-1] != 0 or not is_outside[-1]):
        raise _unreadable()
    return np.asarray(places[(kinds == _COMMA) & is_outside & (depths == 0)])


def _are_escaped(kinds: npt.NDArray[np.uint8], places: Ints) -> Flags:
    """Return one flag per mark: True if an odd number of backslashes directly precedes it."""
    numbers = np.arange(len(kinds))
    follows = np.zeros(len(kinds), bool)
    follows[1:] = (kinds[:-1] == _BACKSLASH) & (np.diff(places) == 1)
    # A run is a sequence of adjacent backslashes and the mark directly after them.
    starts = np.maximum.accumulate(np.where(follows, 0, numbers))
    return np.asarray((numbers - starts) % 2 == 1)


def _unreadable() -> UnreadableBodyError:
    return UnreadableBodyError('the body is not {"events": [...]}')
