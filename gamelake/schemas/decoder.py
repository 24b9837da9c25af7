"""Decoding of Kafka values (framed Protobuf) to Arrow columns, a batch at a time, with the reason of each failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ptars
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.delta.columns import as_delta
from gamelake.model.arrays import Ints
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import SchemaError, UnknownMessageError
from gamelake.schemas.compiler import message_at
from gamelake.schemas.expansion import expansion_of, lengths_of, portions
from gamelake.schemas.framing import FrameGroup, MessageType, Unframed, unframe
from gamelake.schemas.limits import SchemaLimits, check_limits
from gamelake.schemas.schema_cache import MissingSchema, SchemaCache
from gamelake.schemas.wire import wire_type, with_open_enums
from gamelake.schemas.wire_columns import Conflicts

# By the upper bound, so that a batch of ordinary events from Kafka (16 MiB) is one portion.
_PORTION_BYTES = 96 * 2**20
_MIB = 2**20
_COUNTED_BYTES = 4 * 2**20
_UNREADABLE = -1
_PTARS = ptars.PtarsConfig(
    timestamp_unit="us",
    duration_unit="us",
    time_unit="us",
    list_nullable=True,
    map_nullable=True,
    list_value_nullable=True,
    map_value_nullable=True,
)


@dataclass(frozen=True, slots=True)
class DecodedGroup:
    """Events of one message type.

    Attributes:
        name: the full name of the message type.
        rows: int64, ascending: the events' positions in the batch.
        columns: one row for each of `rows`, in that order; one column for each field of the message, in Delta types.
    """

    message_type: MessageType
    name: str
    rows: Ints
    columns: pa.RecordBatch


@dataclass(slots=True)
class Rejects:
    """Rows of a batch that can't be decoded; three lists of the same length.

    Attributes:
        rows: positions in the batch.
        reasons: of the dead letters.
        details: for people.
    """

    rows: list[int] = field(default_factory=list)
    reasons: list[DeadLetterReason] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, rows: Ints | list[int], reason: DeadLetterReason, detail: str) -> None:
        """Reject rows for one reason, with one detail.

        Args:
            rows: positions in the batch (int64).
            reason: of the dead letters.
            detail: for people, without content of the records.
        """
        self.rows.extend(int(row) for row in rows)
        self.reasons.extend([reason] * len(rows))
        self.details.extend([detail] * len(rows))


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded batch: each row is in exactly one group or among the rejects.

    Attributes:
        framed: by message type, the rows (int64) framed with it, decoded or not.
        records: how many rows there are.
    """

    groups: list[DecodedGroup]
    rejects: Rejects
    framed: list[tuple[MessageType, Ints]]
    records: int


class Decoder:
    """Decodes Kafka values by the schemas that their frames name."""

    def __init__(self, schemas: SchemaCache, limits: SchemaLimits | None = None) -> None:
        self._schemas = schemas
        self._limits = limits or SchemaLimits()
        self._messages: dict[MessageType, MessageDecoder | MissingSchema] = {}

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Decode a batch at once; the content of a record or a schema never raises.

        Args:
            values: binary, one Kafka value for each row of the batch; may be null.
        """
        unframed = unframe(values)
        return self._decode(unframed, self._decoders(unframed), len(values))

    def portions(self, values: pa.BinaryArray) -> Iterator[tuple[int, Decoded]]:
        """Decode a batch, at once if its columns take little memory, else in portions that do; see `decode`.

        Yields:
            The first row of each portion in the batch, and its rows, which count from there.
        """
        unframed = unframe(values)
        decoders = self._decoders(unframed)
        known = [(group, decoders[group.message_type]) for group in unframed.groups]
        groups = [(group, decoder) for group, decoder in known if isinstance(decoder, MessageDecoder)]
        if sum(decoder.most_bytes(group.bodies) for group, decoder in groups) <= _PORTION_BYTES:
            yield 0, self._decode(unframed, decoders, len(values))
            return
        sizes = np.zeros(len(values), np.int64)
        for group, decoder in groups:
            sizes[group.rows] = decoder.decoded_bytes(group.bodies)
        for start, end in portions(sizes, _PORTION_BYTES):
            yield start, self._decode(unframed.part(start, end), decoders, end - start)

    def _decoders(self, unframed: Unframed) -> "Mapping[MessageType, MessageDecoder | MissingSchema]":
        # Unknown schemas with the most records are looked up first: invented ids have one record each.
        ordered = sorted(unframed.groups, key=lambda group: -len(group.rows))
        return {group.message_type: self._decoder(group.message_type) for group in ordered}

    def _decode(
        self, unframed: Unframed, decoders: "Mapping[MessageType, MessageDecoder | MissingSchema]", records: int
    ) -> Decoded:
        rejects = Rejects()
        for row, problem in zip(unframed.bad_rows, unframed.problems, strict=True):
            rejects.add([row], DeadLetterReason.BAD_FRAMING, problem)
        groups = (self._decode_group(group, decoders[group.message_type], rejects) for group in unframed.groups)
        framed = [(group.message_type, group.rows) for group in unframed.groups]
        return Decoded([group for group in groups if group is not None], rejects, framed, records)

    def _decode_group(
        self, group: FrameGroup, decoder: "MessageDecoder | MissingSchema", rejects: Rejects
    ) -> DecodedGroup | None:
        if isinstance(decoder, MissingSchema):
            rejects.add(group.rows, decoder.reason, decoder.detail)
            return None
        too_large: list[int] = []
        good, columns = decoder.decode(group.bodies, too_large)
        if len(good) < len(group.rows):
            name = f"{decoder.name} of schema {group.message_type.schema_id}"
            most = f"{self._limits.record_bytes // _MIB} MiB (GAMELAKE_RECORD_MAX_MIB)"
            detail = f"the lists of messages and enums in this {name} take more than {most} once they are decoded"
            rejects.add(group.rows[too_large], DeadLetterReason.RECORD_TOO_LARGE, detail)
            bad = np.setdiff1d(np.arange(len(group.rows)), [*good, *too_large])
            rejects.add(group.rows[bad], DeadLetterReason.UNDECODABLE, f"not a {name}")
        return DecodedGroup(group.message_type, decoder.name, group.rows[good], columns) if len(good) else None

    def _decoder(self, message_type: MessageType) -> "MessageDecoder | MissingSchema":
        if message_type not in self._messages:
            schema = self._schemas.get(message_type.schema_id)
            if isinstance(schema, MissingSchema):
                return schema
            try:
                message = message_at(schema, message_type.index)
                self._messages[message_type] = MessageDecoder(message, self._limits)
            except UnknownMessageError as error:
                return MissingSchema(DeadLetterReason.BAD_FRAMING, str(error))
            except SchemaError as error:
                self._messages[message_type] = MissingSchema(DeadLetterReason.INVALID_SCHEMA, str(error))
        return self._messages[message_type]


class MessageDecoder:
    """Decodes the bodies of one message type.

    Only ptars decides whether a body decodes, and each body by itself. When a batch fails, the protobuf package finds
    the suspects first: it takes a hundredth of ptars' time for one body.

    Raises:
        SchemaError: the type is beyond a limit, has a group, or something else that ptars or Arrow can't read.
    """

    def __init__(self, descriptor: Descriptor, limits: SchemaLimits | None = None) -> None:
        self.name = str(descriptor.full_name)
        limits = limits or SchemaLimits()
        check_limits(descriptor, limits)
        if group := _group_in(descriptor, set()):
            # ptars skips groups silently; dead letters are better than rows that lack values.
            raise SchemaError(f"{group} is a group, which can't be decoded; make it a message field")
        self._expansion, self._most = expansion_of(descriptor), limits.record_bytes
        if self._expansion.row_bytes > self._most:
            raise SchemaError(
                f"each {self.name} takes more than {self._most // _MIB} MiB once it is decoded "
                "(GAMELAKE_RECORD_MAX_MIB); give it fewer columns"
            )
        try:
            counting = self._expansion.counting
            self._counter = ptars.HandlerPool([counting.file], config=_PTARS).get_for_message(counting)
            wire, self._wire = wire_type(descriptor)
            self._handler = ptars.HandlerPool([wire.file], config=_PTARS).get_for_message(wire)
            # Decoded once, so that whatever Arrow refuses is known before a record is decoded.
            columns, _ = self._read(self._handler.array_to_record_batch(pa.array([b""], pa.binary())))
            self._none = columns.slice(0, 0)
            self._suspect: type[Message] = GetMessageClass(descriptor)
            self._plainer: type[Message] = GetMessageClass(with_open_enums(descriptor))
        except SchemaError:
            raise
        except BaseException as error:
            # Nothing but the schema has come in, so it is the schema's fault, unless the machine fails.
            if isinstance(error, MemoryError | OSError) or not (isinstance(error, Exception) or _is_panic(error)):
                raise
            raise SchemaError(
                f"{self.name} can't be decoded ({type(error).__name__}: {_first_line(error)}); write it in proto3"
            ) from error

    def most_bytes(self, bodies: pa.BinaryArray) -> int:
        """Return an upper bound of the bytes in memory that bodies take once they are decoded."""
        return self._expansion.most(len(bodies), bodies.nbytes)

    def decoded_bytes(self, bodies: pa.BinaryArray) -> Ints:
        """Return the bytes (int64) that each body takes once decoded, or a little more; 0 if `decode` leaves it out."""
        lists, lengths = self._counted_bytes(bodies), lengths_of(bodies)
        taken = (lists >= 0) & (lists <= self._most)
        return np.where(taken, self._expansion.row_bytes + lengths * self._expansion.per_byte + lists, 0)

    def _counted_bytes(self, bodies: pa.BinaryArray) -> Ints:
        """Return the memory that the counted lists of each body take; `_UNREADABLE` for those that can't be decoded."""
        counted = self._expansion.counted
        if counted is None:
            return np.zeros(len(bodies), np.int64)
        parts = [np.zeros(0, np.int64)]
        for start, end in portions(lengths_of(bodies), _COUNTED_BYTES):
            some = bodies.slice(start, end - start)
            raw = self._try(some, self._counter)
            if raw is not None:
                parts.append(counted.sizes(raw.to_struct_array()))
            elif len(some) == 1:
                parts.append(np.array([_UNREADABLE]))
            else:
                half = len(some) // 2
                parts.extend([self._counted_bytes(some.slice(0, half)), self._counted_bytes(some.slice(half))])
        return np.concatenate(parts)

    def decode(self, bodies: pa.BinaryArray, too_large: list[int] | None = None) -> tuple[Ints, pa.RecordBatch]:
        """Decode bodies.

        Args:
            bodies: binary without nulls, unframed Protobuf messages of this type.
            too_large: gets the positions of bodies that would take too much memory, and are not decoded.

        Returns:
            The positions of the bodies that decode (int64, ascending), and their columns: one row for each position, in
            the same order, one column for each field in the message's order, in Delta types.
        """
        at = self._without_large(bodies, [] if too_large is None else too_large)
        parts: list[tuple[Ints, pa.RecordBatch]] = []
        self._decode_part(bodies if len(at) == len(bodies) else bodies.take(pa.array(at)), at, parts)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return np.zeros(0, np.int64), self._none
        positions = np.concatenate([part for part, _ in parts])
        table = pa.Table.from_batches([columns for _, columns in parts]).combine_chunks()
        order = np.argsort(positions, kind="stable")
        columns = table.take(pa.array(order)).combine_chunks().to_batches()[0]
        return positions[order], columns

    def _without_large(self, bodies: pa.BinaryArray, too_large: list[int]) -> Ints:
        """Return the positions of the bodies that may be decoded."""
        at = np.arange(len(bodies))
        if self._expansion.counted is None or self.most_bytes(bodies) <= self._most:
            return at
        suspects = np.flatnonzero(lengths_of(bodies) * self._expansion.most_per_byte > self._most)
        sizes = self._counted_bytes(bodies.take(pa.array(suspects)))
        too_large.extend(suspects[sizes > self._most].tolist())
        # A body that can't be read would take the memory until its end.
        return np.setdiff1d(at, suspects[(sizes > self._most) | (sizes == _UNREADABLE)])

    def _decode_part(self, bodies: pa.BinaryArray, at: Ints, parts: list[tuple[Ints, pa.RecordBatch]]) -> None:
        """Decode all bodies at once; if that fails, the suspects one by one and the others at once."""
        if not len(at):
            return
        raw = self._try(bodies)
        if raw is not None:
            self._keep(raw, bodies, at, parts)
        elif len(at) > 1:
            suspects = np.array([self._is_suspect(body) for body in bodies.to_pylist()])
            if suspects.any():
                self._decode_part(bodies.filter(pa.array(~suspects)), at[~suspects], parts)
                self._decode_singly(bodies.filter(pa.array(suspects)), at[suspects], parts)
            else:
                self._decode_part(bodies.slice(0, len(at) // 2), at[: len(at) // 2], parts)
                self._decode_part(bodies.slice(len(at) // 2), at[len(at) // 2 :], parts)

    def _keep(
        self, raw: pa.RecordBatch, bodies: pa.BinaryArray, at: Ints, parts: list[tuple[Ints, pa.RecordBatch]]
    ) -> None:
        """Add decoded bodies to the parts; those that the protocol reads otherwise than ptars are read again."""
        columns, again = self._read(raw)
        if not len(again):
            parts.append((at, columns))
            return
        clean = np.setdiff1d(np.arange(len(at)), again)
        if len(clean):
            parts.append((at[clean], columns.take(pa.array(clean))))
        for known_only in (False, True):
            again = self._read_again(bodies, at, again, parts, known_only=known_only)

    def _read_again(
        self,
        bodies: pa.BinaryArray,
        at: Ints,
        rows: Ints,
        parts: list[tuple[Ints, pa.RecordBatch]],
        *,
        known_only: bool,
    ) -> Ints:
        """Add some of the bodies to the parts, as the Protobuf package reads them. Return those that still conflict."""
        plain = {int(row): self._plain(bodies[int(row)].as_py(), known_only=known_only) for row in rows}
        readable = np.array([row for row, body in plain.items() if body is not None], np.int64)
        raw = self._try(pa.array([plain[int(row)] for row in readable], pa.binary())) if len(readable) else None
        if raw is None:
            return np.zeros(0, np.int64)
        columns, again = self._read(raw)
        clean = np.setdiff1d(np.arange(len(readable)), again)
        if len(clean):
            parts.append((at[readable[clean]], columns.take(pa.array(clean)) if len(again) else columns))
        return readable[again]

    def _read(self, raw: pa.RecordBatch) -> tuple[pa.RecordBatch, Ints]:
        """The message's columns in Delta types, of those of ptars; and the rows (int64) that are to be read again."""
        conflicts = Conflicts()
        arrays = self._wire.read_fields(raw.schema.names, raw.columns, conflicts)
        if not arrays:
            return raw, conflicts.rows()
        return as_delta(pa.RecordBatch.from_arrays(arrays, names=self._wire.named(raw.schema.names))), conflicts.rows()

    def _plain(self, body: bytes, *, known_only: bool) -> bytes | None:
        """The same message with each value once, as the Protobuf package reads it; None if it can't.

        Args:
            body: of the message.
            known_only: leave out what the package does not know. An entry of a map with an unknown field is such,
                though its key may be another one's.
        """
        try:
            message = self._plainer.FromString(body)
        except DecodeError:
            return None
        if known_only:
            message.DiscardUnknownFields()
        return bytes(message.SerializePartialToString())

    def _decode_singly(self, bodies: pa.BinaryArray, at: Ints, parts: list[tuple[Ints, pa.RecordBatch]]) -> None:
        for i in range(len(at)):
            self._decode_part(bodies.slice(i, 1), at[i : i + 1], parts)

    def _is_suspect(self, body: bytes) -> bool:
        try:
            self._suspect.FromString(body)
        except DecodeError:
            return True
        return False

    def _try(self, bodies: pa.BinaryArray, handler: Any = None) -> pa.RecordBatch | None:  # noqa: ANN401 # of ptars
        try:
            return (handler or self._handler).array_to_record_batch(bodies)
        except (ValueError, OverflowError):
            return None
        except BaseException as error:
            # A body that causes a panic is a bad body; any other error is not of a body.
            if not _is_panic(error):
                raise
            return None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]


def _is_panic(error: BaseException) -> bool:
    """Return True if an error is a Rust panic, which is not an Exception and whose class is in no module."""
    return type(error).__name__ == "PanicException"


def _group_in(descriptor: Descriptor, seen: set[str]) -> str | None:
    """The full name of a group somewhere in a message type, None if it has none."""
    seen.add(descriptor.full_name)
    for part in descriptor.fields:
        if part.type == FieldDescriptor.TYPE_GROUP:
            return str(part.full_name)
        if part.message_type is not None and part.message_type.full_name not in seen:
            group = _group_in(part.message_type, seen)
            if group is not None:
                return group
    return None
