"""Event identities: 96-bit hashes of an event's table and id, computed for a whole column at once.

If a sender could compute the hash, one game could send events that collide with another game's, and 64 bits would lose
an event in some years of traffic (docs/decisions/0030). So the multipliers are derived from a secret seed of the
stream, and the function is strongly universal: two different events collide with a probability of 2**-96.
Source: Lemire and Kaser, "Strongly universal string hashing is fast" (2014), the family Multilinear.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.arrays import Bytes, Ints, Words

_HASHES = 3
_TABLE_WORDS = 4
_LONGEST = 64  # bytes; of a longer id, the digest is hashed
_WORDS = 1 + _TABLE_WORDS + _LONGEST // 4
_HALF = np.uint64(32)

_UUID_LENGTH = 36
_IS_HYPHEN = np.isin(np.arange(_UUID_LENGTH), [8, 13, 18, 23])
# Set in each letter of ASCII. The next lower bit, which is not set in upper case, is shifted to the same place.
_LETTER_BITS = np.uint32(0x40404040)
_LETTERS, _DIGITS, _TO_LOWER = np.uint8(6), np.uint8(10), np.uint8(ord("a") - ord("A"))


class Identities:
    """Hashes events of one stream by a seed, which the lakehouse keeps and no sender knows."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        size = (1 + _WORDS) * _HASHES
        key = hashlib.shake_256(f"gamelake event identity {seed}".encode()).digest(8 * size)
        self._offset, *rest = np.frombuffer(key, "<u8").reshape(1 + _WORDS, _HASHES)
        self._multipliers = np.array(rest, np.uint64)
        self._by_table: dict[str, Words] = {}

    def of(self, tables: Sequence[str], codes: Ints, event_ids: pa.StringArray) -> tuple[Words, Words]:
        """Return the identities of events.

        Args:
            tables: paths of silver tables.
            codes: int64, one for each event: the position of its table in `tables`.
            event_ids: string without nulls, one for each event.

        Returns:
            Two uint64 arrays with one element for each event: the first 64 bits of its identity, and the other 32.
        """
        sums = np.empty((len(event_ids), _HASHES), np.uint64)
        lengths = pc.binary_length(event_ids).to_numpy()
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            same = event_ids if len(rows) == len(event_ids) else event_ids.take(pa.array(rows))
            sums[rows] = self._sums(same, int(length))
        sums += np.array([self._of_table(table) for table in tables], np.uint64)[codes]
        halves = sums >> _HALF
        return (halves[:, 0] << _HALF) | halves[:, 1], halves[:, 2]

    def _sums(self, event_ids: pa.StringArray, length: int) -> Words:
        """The sums of the ids' words times their multipliers, modulo 2**64, for ids of one length: shape (ids, 3)."""
        words = _words(event_ids, length)
        first = 1 + _TABLE_WORDS
        result: Words = words @ self._multipliers[first : first + words.shape[1]]
        result += np.uint64(length) * self._multipliers[0]
        return result

    def _of_table(self, table: str) -> Words:
        if table not in self._by_table:
            digest = hashlib.blake2b(table.encode(), digest_size=4 * _TABLE_WORDS).digest()
            words = np.frombuffer(digest, "<u4").astype(np.uint64)
            self._by_table[table] = self._offset + words @ self._multipliers[1 : 1 + _TABLE_WORDS]
        return self._by_table[table]


def _lower_uuids(texts: Bytes) -> None:
    """Write UUIDs in lower case, in place: a UUID is the same in either case (RFC 9562). Other texts keep theirs."""
    words = texts.view(np.uint32)
    if not (words & _LETTER_BITS & ~(words << np.uint32(1))).any():
        return
    # Wraps around below "A", so one comparison finds "A" to "F".
    upper = (texts - np.uint8(ord("A"))) < _LETTERS
    rows = np.flatnonzero(upper.any(axis=1))
    lower = texts[rows] + upper[rows] * _TO_LOWER
    digits = ((lower - np.uint8(ord("0"))) < _DIGITS) | ((lower - np.uint8(ord("a"))) < _LETTERS)
    hyphens = lower == np.uint8(ord("-"))
    is_uuid = np.where(_IS_HYPHEN, hyphens, digits).all(axis=1)
    texts[rows[is_uuid]] = lower[is_uuid]


def _words(event_ids: pa.StringArray, length: int) -> Words:
    """Ids of one length as 32-bit words, padded with zeros: uint64 of shape (ids, words)."""
    if length > _LONGEST:
        digests = b"".join(hashlib.blake2b(event_id.as_buffer(), digest_size=32).digest() for event_id in event_ids)
        return np.frombuffer(digests, "<u4").reshape(len(event_ids), 8).astype(np.uint64)
    width = -(-length // 4) * 4
    padded: Bytes = np.zeros((len(event_ids), width), np.uint8)
    if length:
        # Without nulls and of one length, so the bytes form a matrix.
        start = np.frombuffer(event_ids.buffers()[1], np.int32)[event_ids.offset]
        data = np.frombuffer(event_ids.buffers()[2], np.uint8, len(event_ids) * length, int(start))
        padded[:, :length] = data.reshape(len(event_ids), length)
    if length == _UUID_LENGTH:
        _lower_uuids(padded)
    return padded.view("<u4").astype(np.uint64)
