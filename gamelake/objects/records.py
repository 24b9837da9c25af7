"""Records: typed objects in a folder of the store, each under its own name."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from gamelake.objects.store import Store

T = TypeVar("T", bound=msgspec.Struct)


class Encoding(StrEnum):
    """Encodings of stored records; the value is the suffix of their objects' names."""

    JSON = "json"
    ZSTD = "json.zst"

    def dump(self, record: msgspec.Struct) -> bytes:
        """Encode a record; uncompressed JSON is indented for readers."""
        content = msgspec.json.encode(record)
        return (
            bytes(pa.compress(content, "zstd", asbytes=True)) if self is Encoding.ZSTD else msgspec.json.format(content)
        )

    def load(self, content: bytes, kind: type[T]) -> T:
        """Decode the content of an object.

        Raises:
            msgspec.DecodeError: the content does not match the struct `kind`.
        """
        if self is Encoding.ZSTD:
            content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
        return msgspec.json.decode(content, type=kind)


@dataclass(frozen=True, slots=True)
class Records(Generic[T]):
    """The records of one kind in one folder.

    Attributes:
        store: the lakehouse.
        folder: path inside the store, without a trailing slash.
        kind: the struct that each object holds.
        encoding: of each object.

    Example:
        >>> class Note(msgspec.Struct):
        ...     text: str
        >>> notes = Records(Store(location), "_gamelake/notes", Note)
        >>> notes.add("1", Note("first")), notes.add("1", Note("second"))
        (True, False)
        >>> notes.all()
        [Note(text='first')]
    """

    store: Store
    folder: str
    kind: type[T]
    encoding: Encoding = Encoding.JSON

    def path(self, name: str) -> str:
        """Return the path of a record's object."""
        return f"{self.folder}/{name}.{self.encoding}"

    def read(self, name: str) -> T | None:
        """Read a record; return None if no record has this name.

        Raises:
            msgspec.DecodeError: the object does not match the struct `kind`.
        """
        content = self.store.get(self.path(name))
        return None if content is None else self.encoding.load(content, self.kind)

    def read_many(self, names: Iterable[str]) -> Iterator[T]:
        """Read records ahead, in the order of `names`; skip names without a record.

        Raises:
            msgspec.DecodeError: an object does not match the struct `kind`.
        """
        for content in self.store.get_all(map(self.path, names)):
            if content is not None:
                yield self.encoding.load(content, self.kind)

    def names(self, after: str = "") -> list[str]:
        """List the names of all records, in ascending order; objects in folders below are not among them.

        Args:
            after: only names that follow it; an object store lists only these.
        """
        ending = f".{self.encoding}"
        if after:
            paths = sorted(each.path for each in self.store.objects(self.folder, f"{self.folder}/{after}"))
        else:
            paths = self.store.paths(self.folder)
        places = (path.removeprefix(f"{self.folder}/") for path in paths)
        return [place.removesuffix(ending) for place in places if place.endswith(ending) and "/" not in place]

    def all(self) -> list[T]:
        """Read all records in ascending order of their names."""
        return list(self.read_many(self.names()))

    def add(self, name: str, record: T) -> bool:
        """Write a record under a new name; return False if another record has the name."""
        return self.store.put_new(self.path(name), self.encoding.dump(record))

    def put(self, name: str, record: T) -> None:
        """Write a record, or replace the one with this name."""
        self.store.put(self.path(name), self.encoding.dump(record))

    def delete(self, name: str) -> None:
        """Delete a record, if it exists."""
        self.store.delete(self.path(name))


@dataclass(frozen=True, slots=True)
class NewestRecord(Generic[T]):
    """Records with numbers for names; the one with the greatest number is valid.

    Attributes:
        records: the folder of the records; nothing else writes to it.
    """

    records: Records[T]

    def read(self) -> T | None:
        """Read the record with the greatest number; return None if there is none."""
        found = (self.records.read(name) for name in reversed(self.records.names()))
        return next((each for each in found if each is not None), None)

    def number(self) -> int:
        """Return the greatest number, -1 if there is no record; only list the folder."""
        return max(map(int, self.records.names()), default=-1)

    def replace(self, number: int, record: T) -> None:
        """Write a record, then delete the former ones."""
        former, name = self.records.names(), f"{number:020d}"
        self.records.put(name, record)
        self.records.store.delete_all(self.records.path(each) for each in former if each != name)
