"""Finds messages that have a key of a map twice, or two members of a oneof: by the protocol the last one counts.

ptars keeps them all, and DuckDB then refuses the table. Few senders write such messages, so columns are only searched
for them; the Protobuf package reads those that are found.
Source: Protocol Buffers documentation, "Encoding", headings "Last One Wins" and "Maps".
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

_FEW_ENTRIES = 16
Ints = npt.NDArray[np.int64]


def may_conflict(message: Descriptor) -> bool:
    """Whether a message type, or one inside it, has a map or a oneof; only then its columns need a search."""
    seen, left = {message.full_name}, [message]
    while left:
        found = left.pop()
        if found.GetOptions().map_entry or any(len(each.fields) > 1 for each in found.oneofs):
            return True
        inner = [field.message_type for field in found.fields if field.message_type is not None]
        left += [each for each in inner if each.full_name not in seen]
        seen |= {each.full_name for each in inner}
    return False


def conflicting_rows(message: Descriptor, columns: pa.RecordBatch) -> Ints:
    """The rows of messages with a key of a map twice or two members of a oneof, at any depth.

    Args:
        message: the type of the messages.
        columns: one row for each message, as ptars decodes it, without an offset.

    Returns:
        int64, ascending, each row once.
    """
    arrays = dict(zip(columns.schema.names, columns.columns, strict=True))
    found = list(_of_message(message, arrays, np.arange(len(columns))))
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _of_message(message: Descriptor, arrays: dict[str, pa.Array], rows: Ints) -> Iterator[Ints]:
    """Search the columns of messages; `rows` has the row of each."""
    for oneof in message.oneofs:
        members = [arrays[field.name] for field in oneof.fields if field.name in arrays]
        if len(members) > 1:
            given = sum(np.asarray(each.is_valid().to_numpy(zero_copy_only=False), np.int8) for each in members)
            yield rows[np.asarray(given) > 1]
    for field in message.fields:
        if field.message_type is not None and field.name in arrays:
            yield from _of_field(field.message_type, arrays[field.name], rows)


def _of_field(message: Descriptor, array: pa.Array, rows: Ints) -> Iterator[Ints]:
    if pa.types.is_map(array.type):
        entries = np.repeat(np.arange(len(array)), np.diff(array.offsets.to_numpy()))
        if len(entries):
            yield rows[_with_a_key_twice(array.keys, entries)]
            value = message.fields_by_name["value"].message_type
            if value is not None:
                yield from _of_field(value, array.items, rows[entries])
    elif pa.types.is_list(array.type):
        yield from _of_field(message, array.values, rows[np.repeat(np.arange(len(array)), np.diff(array.offsets))])
    elif pa.types.is_struct(array.type) and len(array):
        inner = {field.name: array.field(place) for place, field in enumerate(array.type)}
        yield from _of_message(message, inner, rows)


def _with_a_key_twice(keys: pa.Array, entries: Ints) -> Ints:
    """The maps with a key twice, of the keys of all maps and the map of each key (int64)."""
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy()
    most = int(np.diff(np.flatnonzero(np.diff(entries, prepend=-1, append=-1))).max())
    if most > _FEW_ENTRIES:
        distinct, counts = np.unique(entries * len(encoded.dictionary) + codes, return_counts=True)
        return np.asarray(distinct[counts > 1] // len(encoded.dictionary))
    # Each key is compared with the next ones of its map, all maps at once: faster than to sort them.
    found = [np.zeros(0, np.int64)]
    for step in range(1, most):
        same = np.flatnonzero(codes[step:] == codes[:-step])
        found.append(entries[same[entries[same] == entries[same + step]]])
    return np.concatenate(found)
