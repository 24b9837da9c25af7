"""Finds any of thousands of search terms in bytes, in all encodings of text, in one pass.

Each position is read once, whatever the number of terms. The 8 bytes at the position are hashed into two tables of the
prefixes of all encoded terms, and compared with the terms only if both tables have the prefix. A few terms are searched
for one by one, which is ten times faster.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

import numpy as np

from gamelake.model.arrays import Flags, Words
from gamelake.model.errors import SettingsError

SHORTEST = 6  # bytes; shorter terms are found anywhere by chance
_WINDOW = 8
_TABLE_BITS = 22
_BLOCK = 1 << 20
_FEW_PATTERNS = 64
_MULTIPLIERS = (np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xC2B2_AE3D_27D4_EB4F))
# The number of base64 characters that depend on the bytes before the term, by the number of these bytes modulo 3.
_BEFORE = (0, 2, 3)


class TermEncoding(StrEnum):
    """The encoding of a term."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    HEXADECIMAL = "hexadecimal"
    BASE64 = "base64"
    JSON = "json escapes"
    PERCENT = "percent-encoding"


@dataclass(frozen=True, slots=True)
class Hit:
    """A term that was found.

    Attributes:
        term: its number, from 1.
        encoding: the encoding in which the bytes have it.
    """

    term: int
    encoding: TermEncoding


class SearchTerms:
    """The search terms in all encodings; after its creation, several threads may search.

    Attributes:
        count: the number of terms.
        longest: the length in bytes of the longest encoded term.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Prepare the search.

        Raises:
            SettingsError: there is no term, or a term is too short. The message has the term's number, not its text.
        """
        if not texts:
            raise SettingsError("there are no search terms; pass at least one")
        for number, text in enumerate(texts, 1):
            if len(text.encode()) < SHORTEST:
                raise SettingsError(
                    f"search term {number} has under {SHORTEST} bytes and would be found anywhere; use a longer one"
                )
        self.count = len(texts)
        self._patterns: dict[bytes, Hit] = {}
        for number, text in enumerate(texts, 1):
            for encoding, pattern in _encodings(text):
                self._patterns.setdefault(pattern, Hit(number, encoding))
        self.longest = max(map(len, self._patterns))
        width = min(_WINDOW, *map(len, self._patterns))
        self._mask = np.uint64((1 << (8 * width)) - 1)
        self._lengths: defaultdict[int, set[int]] = defaultdict(set)
        for pattern in self._patterns:
            self._lengths[int.from_bytes(pattern[:width], "little")].add(len(pattern))
        starts = np.fromiter(self._lengths, np.uint64)
        self._tables = [_table(starts, multiplier) for multiplier in _MULTIPLIERS]

    def in_bytes(self, data: bytes) -> set[Hit]:
        """Return the terms that some bytes contain."""
        return {hit for _, hit in self.places(data)}

    def places(self, data: bytes) -> Iterator[tuple[int, Hit]]:
        """Yield each offset at which a term begins, with the term, in any order."""
        if len(self._patterns) <= _FEW_PATTERNS:
            yield from self._places_one_by_one(data)
            return
        padded = data + bytes(_WINDOW)
        for start in range(0, len(data), _BLOCK):
            count = min(_BLOCK, len(data) - start)
            for place, window in self._candidates(padded, start, count):
                for length in self._lengths.get(window, ()):
                    hit = self._patterns.get(data[place : place + length])
                    if hit:
                        yield place, hit

    def _places_one_by_one(self, data: bytes) -> Iterator[tuple[int, Hit]]:
        for pattern, hit in self._patterns.items():
            place = data.find(pattern)
            while place >= 0:
                yield place, hit
                place = data.find(pattern, place + 1)

    def in_stream(self, parts: Iterable[bytes]) -> set[Hit]:
        """Return the terms in a stream of bytes, including terms that span two parts or more."""
        found: set[Hit] = set()
        tail = b""
        for part in parts:
            found |= self.in_bytes(tail + part)
            tail = (tail + part)[-(self.longest - 1) :]
        return found

    def _candidates(self, padded: bytes, start: int, count: int) -> Iterator[tuple[int, int]]:
        windows: Words = np.ndarray((count,), "<u8", padded, start, (1,)) & self._mask
        places = np.flatnonzero(_known(windows, self._tables[0], _MULTIPLIERS[0]))
        chosen = windows[places]
        both = _known(chosen, self._tables[1], _MULTIPLIERS[1])
        return zip((places[both] + start).tolist(), chosen[both].tolist(), strict=True)


def _encodings(text: str) -> Iterator[tuple[TermEncoding, bytes]]:
    plain = text.encode()
    yield TermEncoding.UTF_8, plain
    yield TermEncoding.UTF_16, text.encode("utf-16-le")
    yield TermEncoding.UTF_16, text.encode("utf-16-be")
    yield TermEncoding.HEXADECIMAL, plain.hex().encode()
    yield TermEncoding.HEXADECIMAL, plain.hex().upper().encode()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + plain)
        # The last character depends on the bytes after the term, unless a group of three ends there.
        padding = encoded.count(b"=")
        part = encoded[_BEFORE[before] : len(encoded) - (padding + 1 if padding else 0)]
        yield TermEncoding.BASE64, part
        yield TermEncoding.BASE64, part.translate(bytes.maketrans(b"+/", b"-_"))
    yield TermEncoding.JSON, json.dumps(text)[1:-1].encode()
    yield TermEncoding.PERCENT, quote(text, safe="").encode()


def _table(starts: Words, multiplier: np.uint64) -> Flags:
    table = np.zeros(1 << _TABLE_BITS, np.bool_)
    table[_hash(starts, multiplier)] = True
    return table


def _known(windows: Words, table: Flags, multiplier: np.uint64) -> Flags:
    return table[_hash(windows, multiplier)]


def _hash(windows: Words, multiplier: np.uint64) -> Words:
    return (windows * multiplier) >> np.uint64(64 - _TABLE_BITS)
