"""The Confluent wire format, parsed for a whole array of records at once.

A value is: magic byte 0, schema id (4 bytes, big-endian), message index, Protobuf body. The message index is an array
of zig-zag varints, its length first; the most common one, `[0]`, is written as the single byte 0.
Source: Confluent documentation, "Formats, serializers, and deserializers", heading "Wire format".
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.arrays import Bytes, Flags, Ints

MAGIC = 0
_ID_END = 5
_MORE = 0x80  # set in each byte of a varint but the last
_VARINT_BYTES = 5  # enough for an int32
DEEPEST_NESTING = 16
_COMMON_INDEXES = 16
_WHOLE_BODY = 2**31 - 1  # pyarrow's binary_slice fails without a stop


@dataclass(frozen=True, slots=True)
class MessageType:
    """The message of a schema that a record has."""

    schema_id: int
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """The records of one message type.

    Attributes:
        rows: int64, ascending: the records' positions in the batch.
        bodies: binary, one for each of `rows`: the values without their frames.
    """

    message_type: MessageType
    rows: Ints
    bodies: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class Unframed:
    """A batch split by message type.

    Attributes:
        bad_rows: int64, ascending: the positions of values without a valid frame.
        problems: what is wrong with each of `bad_rows`.
    """

    groups: list[FrameGroup]
    bad_rows: Ints
    problems: list[str]

    def part(self, start: int, end: int) -> "Unframed":
        """Return the same of a range of the batch's rows."""
        groups = []
        for group in self.groups:
            first, last = np.searchsorted(group.rows, (start, end))
            if first < last:
                rows, bodies = group.rows[first:last] - start, group.bodies.slice(first, last - first)
                groups.append(FrameGroup(group.message_type, rows, bodies))
        first, last = np.searchsorted(self.bad_rows, (start, end))
        return Unframed(groups, self.bad_rows[first:last] - start, self.problems[first:last])


def frame_header(schema_id: int) -> bytes:
    """Return the frame before the body of a schema's first message, whose index [0] is written as one byte."""
    return bytes([MAGIC]) + schema_id.to_bytes(_ID_END - 1, "big") + b"\x00"


HEADER_BYTES = len(frame_header(0))


def unframe(values: pa.BinaryArray) -> Unframed:
    """Split Kafka values by schema id and message index, without a loop over records.

    Args:
        values: binary, one Kafka value for each record; nulls are bad rows.
    """
    frames = _Frames(values)
    good = np.flatnonzero(frames.ok)
    bad = np.flatnonzero(~frames.ok)
    groups = [_group(values, frames, rows) for rows in frames.rows_by_header(good)]
    return Unframed(groups, bad, [frames.problem(int(row)) for row in bad])


def _group(values: pa.BinaryArray, frames: "_Frames", rows: Ints) -> FrameGroup:
    header = int(frames.body_start[rows[0]])
    chosen = values if len(rows) == len(values) else values.take(pa.array(rows))
    bodies = pc.binary_slice(chosen, header, _WHOLE_BODY)
    return FrameGroup(frames.message_type(int(rows[0])), rows, bodies)


class _Frames:
    """The frames of all values, read byte by byte and varint by varint for all values at once.

    All arrays have one element for each value: `ok` (bool), `schema_id` and `body_start` (int64, the first byte of the
    body); the latter two are undefined where `ok` is false.
    """

    def __init__(self, values: pa.BinaryArray) -> None:
        offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
        data = values.buffers()[2]
        self._bytes = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        self._start = offsets[:-1].astype(np.int64)
        self._end = offsets[1:].astype(np.int64)
        self._null = np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool)
        long_enough = self._end - self._start > _ID_END
        self._magic = self._byte_at(self._start)
        self.ok: Flags = ~self._null & long_enough & (self._magic == MAGIC)
        self.schema_id = self._schema_ids()
        self.body_start: Ints = np.full(len(values), _ID_END + 1, np.int64)
        self._indexes: dict[int, tuple[int, ...]] = {}
        self._index_code: Ints = np.zeros(len(values), np.int64)
        self._read_indexes()

    def _byte_at(self, position: Ints) -> Bytes:
        return np.asarray(self._bytes[np.minimum(position, len(self._bytes) - 1)])

    def _schema_ids(self) -> Ints:
        parts = [self._byte_at(self._start + place).astype(np.int64) << (8 * (4 - place)) for place in (1, 2, 3, 4)]
        return np.asarray(parts[0] | parts[1] | parts[2] | parts[3])

    def _read_indexes(self) -> None:
        """Read the message index of the rows whose index is not the single byte 0."""
        rows = np.flatnonzero(self.ok & (self._byte_at(self._start + _ID_END) != 0))
        # A topic has few message types: each is read once, and its bytes are found in all rows at once.
        for _ in range(_COMMON_INDEXES):
            if not len(rows):
                return
            self._read_varints(rows[:1])
            if not self.ok[rows[0]]:
                rows = rows[1:]
                continue
            same = self._same_index(rows)
            self._index_code[rows[same]] = self._index_code[rows[0]]
            self.body_start[rows[same]] = self.body_start[rows[0]]
            rows = rows[~same]
        if len(rows):
            self._read_varints(rows)

    def _same_index(self, rows: Ints) -> Flags:
        """Flag the rows whose index has the same bytes as that of the first row, which is read already."""
        first, start = rows[0], self._start[rows]
        length = int(self.body_start[first])
        same = self._end[rows] - start >= length
        for place in range(_ID_END, length):
            same &= self._byte_at(start + place) == self._bytes[self._start[first] + place]
        return np.asarray(same)

    def _read_varints(self, rows: Ints) -> None:
        """Read the message index of rows, varint by varint."""
        count, position, ok = self._varints(self._start[rows] + _ID_END, self._end[rows])
        ok &= (count > 0) & (count <= DEEPEST_NESTING)
        path = np.zeros((len(rows), DEEPEST_NESTING), np.int64)
        for depth in range(int(count[ok].max(initial=0))):
            index, after, read = self._varints(position, self._end[rows])
            deep = depth < count
            path[deep, depth] = index[deep]
            position = np.where(deep, after, position)
            ok &= ~deep | (read & (index >= 0))
        self.ok[rows[~ok]] = False
        self.body_start[rows] = position - self._start[rows]
        self._remember(rows[ok], count[ok], path[ok])

    def _remember(self, rows: Ints, count: Ints, path: Ints) -> None:
        if not len(rows):
            return
        # Column by column: numpy sorts whole rows about 20 times slower.
        first, code = np.unique(count, return_index=True, return_inverse=True)[1:]
        for depth in range(int(count.max())):
            steps = np.unique(path[:, depth], return_inverse=True)[1]
            first, code = np.unique(code * len(rows) + steps, return_index=True, return_inverse=True)[1:]
        known = len(self._indexes) + 1
        self._index_code[rows] = code + known
        for number, row in enumerate(first):
            self._indexes[known + number] = tuple(int(step) for step in path[row, : count[row]])

    def _varints(self, position: Ints, end: Ints) -> tuple[Ints, Ints, Flags]:
        """Read one zig-zag varint at each position: its value, the position after it, and True if it is complete."""
        raw = np.zeros(len(position), np.int64)
        reading = np.ones(len(position), bool)
        complete = np.zeros(len(position), bool)
        for group in range(_VARINT_BYTES):
            reading = reading & (position < end)
            byte = self._byte_at(position).astype(np.int64)
            raw = np.where(reading, raw | ((byte & 0x7F) << (7 * group)), raw)
            position = position + reading
            complete |= reading & (byte < _MORE)
            reading = reading & ~complete
        return (raw >> 1) ^ -(raw & 1), position, complete

    def rows_by_header(self, rows: Ints) -> list[Ints]:
        """Rows split into parts of the same schema id, message index and frame length; ascending within each part."""
        if not len(rows):
            return []
        code = self._index_code[rows] * 2**40 + self.body_start[rows] * 2**32 + self.schema_id[rows]
        if (code == code[0]).all():
            return [rows]
        order = np.argsort(code, kind="stable")
        edges = np.flatnonzero(np.diff(code[order])) + 1
        return np.split(rows[order], edges)

    def message_type(self, row: int) -> MessageType:
        return MessageType(int(self.schema_id[row]), self._indexes.get(int(self._index_code[row]), (0,)))

    def problem(self, row: int) -> str:
        """What is wrong with a value without a valid frame; never quotes the value."""
        length = int(self._end[row] - self._start[row])
        if self._null[row]:
            return "the record has no value"
        if length <= _ID_END:
            return f"the value has {length} bytes, fewer than a frame"
        if self._magic[row] != MAGIC:
            return f"the first byte is {int(self._magic[row])}, not {MAGIC}"
        return "the message index is not an array of varints"
