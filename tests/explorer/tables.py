"""Delta tables of a store in memory, in place of those that delta-rs opens on a disk or an object store."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.log.codec import Action, FileEntry, contents_of, decode_entry, following_entries
from gamelake.objects.store import Location, Store
from tests.explorer.simulation import MemoryStore, ScheduledStore
from tests.explorer.world import World, calling_world

Objects = Mapping[str, tuple[bytes, float]]


class MemoryTable:
    """A version of a table, with the parts of `DeltaTable` that the platform uses.

    `test_a_table_in_memory_says_what_delta_rs_says_of_it` compares both. It reads the log from its first entry on.
    """

    def __init__(self, store: Store, table: str, version: int | None = None) -> None:
        self.table_uri = store.location.child(table)
        self._version = -1
        self._transactions: dict[str, int] = {}
        self._adds: dict[str, Action] = {}
        for number, content in following_entries(store, table, -1):
            if version is not None and number > version:
                break
            self._version = number
            self._take(_decoded(content))
        if self._version < 0:
            raise TableNotFoundError(table)

    def _take(self, actions: Sequence[Action]) -> None:
        for transaction in contents_of(actions, "txn"):
            self._transactions[transaction["appId"]] = transaction["version"]
        for remove in contents_of(actions, "remove"):
            self._adds.pop(remove["path"], None)
        self._adds |= {add["path"]: add for add in contents_of(actions, "add")}
        for metadata in contents_of(actions, "metaData"):
            self._metadata = metadata
        for protocol in contents_of(actions, "protocol"):
            self._protocol = protocol

    def version(self) -> int:
        return self._version

    def schema(self) -> Schema:
        return _schema(self._metadata["schemaString"])

    def metadata(self) -> SimpleNamespace:
        found = self._metadata
        return SimpleNamespace(
            id=found["id"],
            name=found["name"],
            description=found.get("description"),
            partition_columns=found["partitionColumns"],
            created_time=found["createdTime"],
            configuration=found["configuration"],
        )

    def protocol(self) -> SimpleNamespace:
        return SimpleNamespace(
            min_reader_version=self._protocol["minReaderVersion"],
            min_writer_version=self._protocol["minWriterVersion"],
            writer_features=self._protocol.get("writerFeatures"),
            reader_features=self._protocol.get("readerFeatures"),
        )

    def transaction_version(self, app_id: str) -> int | None:
        return self._transactions.get(app_id)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """As DeltaTable's, without statistics; partition values are strings."""
        assert not flatten
        rows = [
            {"path": add["path"], "size_bytes": add["size"], "partition": add["partitionValues"]}
            for add in self._adds.values()
        ]
        fields = [(name, pa.string()) for name in self._metadata["partitionColumns"]]
        columns = [("path", pa.string()), ("size_bytes", pa.int64())]
        return pa.Table.from_pylist(rows, pa.schema([*columns, ("partition", pa.struct(fields))]))

    def create_checkpoint(self) -> None:
        """Write nothing: all entries are read."""


# Most runs of a case have the same entries.
@lru_cache(maxsize=1024)
def _decoded(content: bytes) -> list[Action]:
    return decode_entry(content)


@lru_cache(maxsize=64)
def _schema(text: str) -> Schema:
    return Schema.from_json(text)


class Lake:
    """The lakehouse of the run under way: modules that open one by its location get its store and its tables.

    Attributes:
        plain: its store; tests use it before and after a run.
        store: the same, each of its operations a point of the schedule.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self.begin(World(), {})
        replacements: dict[str, Callable[..., object]] = {"Store": lambda _: self.store, "open_table": self.opened}
        for module in modules:
            for name, replacement in replacements.items():
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, replacement)

    def begin(self, world: World, objects: Objects) -> None:
        """Begin a run with these objects."""
        self.plain = MemoryStore(lambda: world.now)
        self.plain.content = dict(objects)
        self.store = ScheduledStore(self.plain)

    def opened(self, _: Location, table: str, version: int | None = None) -> DeltaTable:
        found = calling_world().perform(f"open {table}", lambda: MemoryTable(self.plain, table, version))
        return cast("DeltaTable", found)

    def rows_of(self, _: Store, table: str, columns: pa.Schema, files: Sequence[FileEntry]) -> pa.Table:
        """The rows of some files, in the columns of the table that are not in the files' paths."""
        wanted = pa.schema([field for field in columns if field.name not in files[0].partition])
        found = [read_rows(self.store, f"{table}/{file.relative_path}") for file in files]
        return pa.concat_tables([each.cast(wanted) for each in found])


def prepared(lake: Lake, objects: Objects, body: Callable[[], object]) -> Objects:
    """The objects of a lakehouse after a process has run alone."""
    world = World()
    lake.begin(world, objects)
    world.start("preparation", body)
    world.run()
    assert not world.errors, world.errors
    return lake.plain.content


def read_rows(store: Store, path: str) -> pa.Table:
    """The rows of a Parquet file.

    Raises:
        FileNotFoundError: there is none.
    """
    content = store.get(path)
    if content is None:
        raise FileNotFoundError(path)
    return _parquet(content)


@lru_cache(maxsize=1024)
def _parquet(content: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(content))


def paths_in(store: Store, table: str) -> list[str]:
    """The paths of a table's files under its folder; none if there is no table."""
    try:
        return _paths(MemoryTable(store, table))
    except TableNotFoundError:
        return []


def rows_in(store: Store, table: str, column: str, version: int | None = None) -> list[Any]:
    """A column of a table; read without the platform's code.

    Raises:
        AssertionError: a file of the version is missing.
    """
    paths = [f"{table}/{path}" for path in _paths(MemoryTable(store, table, version))]
    missing = store.missing(paths)
    assert not missing, f"live files are missing: {missing}"
    return [each for path in paths for each in read_rows(store, path)[column].to_pylist()]


def _paths(table: MemoryTable) -> list[str]:
    return [unquote(path) for path in table.get_add_actions(flatten=False)["path"].to_pylist()]
