"""Turn the columns that ptars decodes by a `wire_type` into those of messages, and find the rows to read again.

ptars keeps a key of a map that comes twice, all members of a oneof, and of a value that comes twice the last one. By
the protocol the last key and member count, and messages are merged. Few senders write such messages, so columns are
only searched for them, and the Protobuf package reads those that are found.
Source: Protocol Buffers documentation, "Encoding", headings "Last One Wins" and "Maps".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.arrays import Ints

_FEW_ENTRIES = 16


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Collects rows that have to be read again.

    Attributes:
        found: int64 each, rows of the batch.
        offsets: of the lists around the array that is being read, the outermost first.
    """

    found: list[Ints] = field(default_factory=list)
    offsets: tuple[npt.NDArray[np.int32], ...] = ()

    def add(self, places: Ints) -> None:
        """Add the rows of elements of the array that is being read, by their places in it (int64, ascending)."""
        for offsets in reversed(self.offsets):
            places = np.searchsorted(offsets, places, side="right") - 1
        if len(places):
            self.found.append(places)

    def inside(self, offsets: npt.NDArray[np.int32]) -> "Conflicts":
        """Return the same rows, for the values of a list with these offsets (int32)."""
        return Conflicts(self.found, (*self.offsets, offsets))

    def rows(self) -> Ints:
        """Return all rows that were found: int64, ascending, each once."""
        return np.unique(np.concatenate(self.found)) if self.found else np.zeros(0, np.int64)


class WireColumn(Protocol):
    """A column of ptars that differs from the message's column."""

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:
        """Return the column of the message, as long as `array`; values of rows with a conflict are undefined.

        Args:
            array: as ptars made it, without an offset.
            conflicts: gets the rows that have to be read again.
        """
        ...


class OnceColumn:
    """A value that is declared as repeated: null where it is absent."""

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:
        """Return the column that `WireColumn.read` describes."""
        offsets, values = array.offsets.to_numpy(), array.values
        counts = np.diff(offsets)
        if len(values) == len(array) and (counts == 1).all():
            return values
        conflicts.add(np.flatnonzero(counts > 1))
        if not len(values):
            return pa.nulls(len(array), values.type)
        return values.take(pa.array(offsets[:-1], mask=counts == 0))


class EnumColumn:
    """Numbers of an enum: its names, and a number that it does not name as text."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = pa.array(names.values(), pa.string())
        self._numbers = pa.array(names, pa.int32())
        self._are_places = list(names) == list(range(len(names)))

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:  # by the protocol
        """Return the column that `WireColumn.read` describes."""
        if self._are_places and array.null_count < len(array):
            bounds = pc.min_max(array).as_py()
            if bounds["min"] >= 0 and bounds["max"] < len(self._names):
                return self._names.take(array)
        return pc.coalesce(self._names.take(pc.index_in(array, value_set=self._numbers)), array.cast(pa.string()))


class TextColumn:
    """Bytes of a text that need not be UTF-8: what is not becomes U+FFFD, as Java reads it."""

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:  # by the protocol
        """Return the column that `WireColumn.read` describes."""
        try:
            return array.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [None if each is None else each.decode("utf-8", "replace") for each in array.to_pylist()]
            return pa.array(texts, pa.string())


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A list whose elements are not what they stand for."""

    element: WireColumn

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:
        """Return the column that `WireColumn.read` describes."""
        values = self.element.read(array.values, conflicts.inside(array.offsets.to_numpy()))
        return array if values is array.values else pa.ListArray.from_arrays(array.offsets, values)


@dataclass(frozen=True, slots=True)
class MapColumn:
    """A map that is declared as a list of entries; a column that is what it stands for is None."""

    key: WireColumn | None
    value: WireColumn | None

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:
        """Return the column that `WireColumn.read` describes."""
        offsets, entries = array.offsets, array.values
        keys, values = entries.field(0), entries.field(1)
        inside = conflicts.inside(offsets.to_numpy())
        if self.key is not None:
            keys = self.key.read(keys, inside)
        if self.value is not None:
            values = self.value.read(values, inside)
        if len(keys):
            conflicts.add(_with_a_key_twice(keys, np.repeat(np.arange(len(array)), np.diff(offsets.to_numpy()))))
            if values.null_count:
                # A missing message is an empty one.
                inside.add(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)))
        return pa.MapArray.from_arrays(offsets, keys, values)


@dataclass(frozen=True, slots=True)
class MessageColumn:
    """A message; its fields are in ptars' order, which need not be the message's.

    Attributes:
        columns: of its fields, by their names in ptars; None for those that are what they stand for.
        oneofs: the names of their members in ptars.
        renamed: the names of the fields whose names in ptars are others, by these.
    """

    columns: Mapping[str, WireColumn | None]
    oneofs: Sequence[Sequence[str]]
    renamed: Mapping[str, str]

    @property
    def has_work(self) -> bool:
        """True if the columns differ from the message's, or may have conflicts."""
        return bool(self.renamed or self.oneofs) or any(column is not None for column in self.columns.values())

    def read(self, array: pa.Array, conflicts: Conflicts) -> pa.Array:
        """Return the column that `WireColumn.read` describes."""
        names = [field.name for field in array.type]
        before = [array.field(place) for place in range(len(names))]
        after = self.read_fields(names, before, conflicts)
        if not self.renamed and all(new is old for new, old in zip(after, before, strict=True)):
            return array
        fields = [pa.field(name, each.type) for name, each in zip(self.named(names), after, strict=True)]
        return pa.StructArray.from_arrays(after, fields=fields, mask=array.is_null() if array.null_count else None)

    def named(self, names: Sequence[str]) -> list[str]:
        """Return the names that ptars has for the fields, in that order."""
        return [self.renamed.get(name, name) for name in names]

    def read_fields(self, names: Sequence[str], arrays: Sequence[pa.Array], conflicts: Conflicts) -> list[pa.Array]:
        """Return the columns of the fields, by their names in ptars, in that order."""
        columns = [self.columns[name] for name in names]
        read = [
            array if column is None else column.read(array, conflicts)
            for array, column in zip(arrays, columns, strict=True)
        ]
        if self.oneofs:
            by_name = dict(zip(names, read, strict=True))
            for members in self.oneofs:
                given = [
                    np.asarray(by_name[name].is_valid().to_numpy(zero_copy_only=False), np.int8) for name in members
                ]
                conflicts.add(np.flatnonzero(np.sum(given, axis=0) > 1))
        return read


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
