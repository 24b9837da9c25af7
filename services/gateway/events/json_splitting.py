"""Splits a body into the texts of its events if one of the events is not JSON.

Cutting a text within an emoji leaves half of a surrogate pair, and dividing by zero gives NaN. An event with either is
not JSON (RFC 8259), and a JSON decoder stops there. Quotes and brackets still show where the event ends.
"""

import re
from collections.abc import Sequence

import numpy as np

from gamelake.model.arrays import Bytes, Flags, Ints
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
# A mark takes up to 60 bytes of memory while its block is examined.
_BLOCK_BYTES = 2**16
# 5,000 events of 20 fields have half as many. More would take the event loop's time.
_MOST_MARKS = 2**20


def event_texts(body: bytes, max_events: int) -> Sequence[bytes]:
    """Return the text of each event of `{"events": [...]}`, without checking that the text is JSON.

    Raises:
        UnreadableBodyError: the body is not such an object, or its quotes and brackets don't match.
        BodyTooLargeError: the body has more than `max_events` events, or too many quotes, brackets and commas.
    """
    inner = _list_of_events(body)
    if not inner.strip(_SPACE):
        return []
    commas = _commas_between(inner, max_events)
    starts, ends = [0, *(comma + 1 for comma in commas)], [*commas, len(inner)]
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


def _commas_between(text: bytes, max_events: int) -> list[int]:
    """Return the indexes of the commas outside of all texts, objects and lists.

    Block by block: the memory does not depend on the number of marks.
    """
    scanner, commas = _Scanner(), list[int]()
    for start in range(0, len(text), _BLOCK_BYTES):
        found = scanner.commas_in(np.frombuffer(text, np.uint8, min(_BLOCK_BYTES, len(text) - start), start))
        commas += (found + start).tolist()
        if scanner.marks > _MOST_MARKS:
            raise BodyTooLargeError("the body is not JSON, and too large to find the events that are")
        if len(commas) >= max_events:
            raise BodyTooLargeError(f"a body may contain {max_events} events")
    if scanner.depth or scanner.is_in_text:
        raise _unreadable()
    return commas


class _Scanner:
    """Scans the blocks of a text in their order.

    Attributes:
        marks: how many there were.
        depth: how many objects and lists are open.
        is_in_text: True between two quotes.
    """

    def __init__(self) -> None:
        self.marks = self.depth = 0
        self.is_in_text = False
        self._is_escaped = False

    def commas_in(self, block: Bytes) -> Ints:
        """Return the indexes (int64) of the block's commas outside of all texts, objects and lists.

        Raises:
            UnreadableBodyError: a bracket closes what is not open.
        """
        marks = _MARKS[block]
        places = np.flatnonzero(marks)
        kinds = marks[places]
        self.marks += len(places)
        quotes = (kinds == _QUOTE) & ~self._are_escaped(kinds, places, len(block))
        # A mark is in a text if the number of quotes up to and including the mark is odd.
        is_outside = (np.cumsum(quotes) + self.is_in_text) % 2 == 0
        steps = np.where(kinds == _OPEN, 1, np.where(kinds == _CLOSE, -1, 0)) * is_outside
        depths = np.cumsum(steps) + self.depth
        if not len(places):
            return places
        if depths.min() < 0:
            raise _unreadable()
        self.depth, self.is_in_text = int(depths[-1]), not is_outside[-1]
        return np.asarray(places[(kinds == _COMMA) & is_outside & (depths == 0)])

    def _are_escaped(self, kinds: Bytes, places: Ints, size: int) -> Flags:
        """Return one flag per mark: True if an odd number of backslashes directly precedes it."""
        numbers = np.arange(len(kinds))
        follows = np.zeros(len(kinds), bool)
        follows[1:] = (kinds[:-1] == _BACKSLASH) & (np.diff(places) == 1)
        # A run is a sequence of adjacent backslashes and the mark directly after them. It may begin in the last block.
        starts = np.maximum.accumulate(np.where(follows, 0, numbers))
        begins_before = self._is_escaped and len(places) > 0 and places[0] == 0
        escaped = (numbers - starts + (begins_before & (starts == 0))) % 2 == 1
        ends_in_run = len(places) > 0 and places[-1] == size - 1 and kinds[-1] == _BACKSLASH
        self._is_escaped = bool(ends_in_run and not escaped[-1])
        return np.asarray(escaped)


def _unreadable() -> UnreadableBodyError:
    return UnreadableBodyError('the body is not {"events": [...]}')
