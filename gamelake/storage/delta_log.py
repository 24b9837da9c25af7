"""The codec of Delta transaction logs: where entries are, how they are encoded and decoded, and what actions say.

An entry is one commit of a table: a JSON object per line, each of them one action.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries", "Actions" and "Per-file Statistics".
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.model.errors import StoreError
from gamelake.storage.data_files import DataFile
from gamelake.storage.store import Location, Store

LOG_FOLDER = "_delta_log"
ENGINE = "Gamelake/0.1"

# Keys that the platform adds to commitInfo.
# Of a batch: `application/batch`.
BATCH_NOTE = "gamelake.batch"
# Of an erasure: the run that it belongs to.
ERASURE_NOTE = "gamelake.erasure"
# Of a rewrite: records were decoded again, and their rows replace as many rows.
REBUILT_NOTE = "gamelake.rebuilt"
# The application ids of replays start with this; a replay's rows are as old as the records that it reads.
REPLAY = "replay-"

# The table feature by which other writers delete rows of files that stay.
DELETION_VECTORS = "deletionVectors"

# One line of an entry: the kind of the action ("add", "txn", ...), and its content.
Action: TypeAlias = dict[str, Any]

_ENTRIES_AT_ONCE = 1_024
_SCHEMES = frozenset({"file", "s3"})


# Entries in the store.


def entry_path(table: str, version: int) -> str:
    """The path of a version's log entry."""
    return f"{table}/{LOG_FOLDER}/{version:020d}.json"


def entry_versions(store: Store, table: str, after: int = -1) -> list[int]:
    """The versions after another one that have a log entry, in ascending order; only these are listed."""
    beginning = entry_path(table, after) if after >= 0 else None
    names = (each.path.rsplit("/", 1)[-1] for each in store.objects(f"{table}/{LOG_FOLDER}", beginning))
    versions = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(version) for version in versions if version.isdigit())


def entries_after(store: Store, table: str, version: int) -> Iterator[tuple[int, bytes]]:
    """The entries after a version that a listing finds, in order, read ahead; versions may be missing between them."""
    wanted = entry_versions(store, table, version)
    # In portions: a history of weeks has hundreds of thousands of paths.
    for start in range(0, len(wanted), _ENTRIES_AT_ONCE):
        versions = wanted[start : start + _ENTRIES_AT_ONCE]
        contents = store.get_all([entry_path(table, each) for each in versions])
        yield from ((each, content or b"") for each, content in zip(versions, contents, strict=True))


def following_entries(store: Store, table: str, version: int) -> Iterator[tuple[int, bytes]]:
    """The entries after a version, in order, up to the first that is missing: without a listing, for a few commits."""
    while (content := store.get(entry_path(table, version + 1))) is not None:
        version += 1
        yield version, content


def preceding_entries(store: Store, table: str, version: int) -> Iterator[tuple[int, list[Action]]]:
    """The decoded entries from a version down, up to the first that is missing."""
    while (content := store.get(entry_path(table, version))) is not None:
        yield version, decode_entry(content)
        version -= 1


def encode_entry(actions: Iterable[Action]) -> bytes:
    """A log entry's text: UTF-8 without escapes.

    delta-rs and the Delta kernel decode the escapes of every second plane from U+20000 on to other characters; see
    docs/upstream/surrogate-pairs.md.
    """
    lines = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions)
    return "\n".join(lines).encode()


def decode_entry(content: bytes) -> list[Action]:
    """The actions of a log entry, in order.

    Raises:
        ValueError: the entry is damaged.
    """
    return [json.loads(line) for line in content.splitlines() if line.strip()]


# What actions say.


def contents_of(actions: Iterable[Action], kind: str) -> Iterator[Action]:
    """The contents of an entry's actions of one kind."""
    return (action[kind] for action in actions if kind in action)


def commit_info_of(actions: Iterable[Action]) -> Mapping[str, Any]:
    """The content of an entry's commitInfo, empty if it has none."""
    return next(contents_of(actions, "commitInfo"), {})


def transactions_of(actions: Iterable[Action]) -> list[str]:
    """The transactions of an entry, as `application/version`."""
    return [f"{each['appId']}/{each['version']}" for each in contents_of(actions, "txn")]


def changes_rows(actions: Iterable[Action], kinds: Sequence[str] = ("add", "remove")) -> bool:
    """Whether an entry changes what the table holds, not only how its rows are spread over files."""
    return any(action[kind]["dataChange"] for action in actions for kind in kinds if kind in action)


def row_count(add: Action) -> int:
    """The rows of the file that an add action names, 0 if it has no statistics."""
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 0))


def is_revision(info: Mapping[str, Any]) -> bool:
    """Whether a commit, by its commitInfo, restored, replayed or backfilled rows."""
    return (
        info.get("operation") == "RESTORE" or REBUILT_NOTE in info or str(info.get(BATCH_NOTE, "")).startswith(REPLAY)
    )


# Actions to write.


def now_milliseconds() -> int:
    """The current time in milliseconds since 1970, the unit of all times in a log."""
    return int(time.time() * 1000)


def commit_info(
    now: int,
    operation: str,
    parameters: Mapping[str, str],
    *,
    metrics: Mapping[str, int] | None = None,
    is_blind_append: bool = False,
    notes: Mapping[str, str] | None = None,
) -> Action:
    """The action that describes a commit.

    Args:
        now: milliseconds since 1970.
        operation: as `DESCRIBE HISTORY` shows it.
        parameters: the operation's parameters.
        metrics: the operation's metrics.
        is_blind_append: whether the commit adds files without having read the table.
        notes: keys of the platform's own, such as `BATCH_NOTE`.
    """
    info: dict[str, Any] = {"timestamp": now, "operation": operation, "operationParameters": dict(parameters)}
    if metrics:
        # Delta's metrics are strings.
        info["operationMetrics"] = {name: str(count) for name, count in metrics.items()}
    info |= {"isBlindAppend": is_blind_append, "engineInfo": ENGINE, **(notes or {})}
    return {"commitInfo": info}


def transaction_action(app_id: str, version: int, now: int) -> Action:
    """The action by which a table remembers the last transaction of an application."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": now}}


def protocol_action(reader: int, writer: int) -> Action:
    """The action that says which versions of the protocol a table needs."""
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """What a table is, by its log.

    Attributes:
        table_id: the table's own id, the same for its life.
        name: for readers.
        description: for readers; None leaves the key out.
        schema: the Delta schema as JSON.
        partition_by: the partition columns, in order.
        properties: the table's properties.
        created: milliseconds since 1970.
    """

    table_id: str
    name: str | None
    description: str | None
    schema: str
    partition_by: Sequence[str]
    properties: Mapping[str, str]
    created: int | None

    def action(self) -> Action:
        """The action that makes it so."""
        metadata: dict[str, Any] = {
            "id": self.table_id,
            "name": self.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": self.schema,
            "partitionColumns": list(self.partition_by),
            "configuration": dict(self.properties),
            "createdTime": self.created,
        }
        if self.description is not None:
            metadata["description"] = self.description
        return {"metaData": metadata}


def add_action(file: DataFile, now: int) -> Action:
    """The action that adds a file with new data."""
    add = {
        "path": quote(file.path, safe="/="),
        "partitionValues": file.partition,
        "size": file.size,
        "modificationTime": now,
        "dataChange": True,
        "stats": file.statistics,
    }
    return {"add": add}


def remove_action(file: "FileEntry", now: int) -> Action:
    """The action that removes a file, and with it its rows, from a table."""
    remove = {
        "path": file.path,
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": file.partition,
        "size": file.size,
    }
    return {"remove": remove}


def without_data_change(action: Action) -> Action:
    """The add or remove action of a commit that only rewrites: readers of the table's changes skip it."""
    return {kind: {**content, "dataChange": False} for kind, content in action.items()}


# Live files.


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the log names it: its percent-encoded path, its size in bytes, its partition values as strings."""

    path: str
    size: int
    partition: Mapping[str, str | None] = field(hash=False)

    @property
    def relative_path(self) -> str:
        """The file's path under the table's folder; the absolute path of a file that a shallow clone names."""
        return unquote(self.path)


def object_path(location: Location, table: str, place: str) -> str:
    """The path of a file in the lakehouse; see `FileEntry.relative_path`.

    Raises:
        StoreError: the file is in no folder of this lakehouse.
    """
    scheme = place.partition(":")[0]
    if scheme not in _SCHEMES:
        return f"{table}/{place}"
    # Spark writes file:/path where others write file:///path.
    plain = place.replace(":///", ":/", 1)
    root = unquote(location.uri).rstrip("/").replace(":///", ":/", 1)
    if not plain.startswith(f"{root}/"):
        raise StoreError(f"{table} names a file of another lakehouse: {place}")
    return plain.removeprefix(f"{root}/")


def live_files(handle: DeltaTable, *, with_deleted_rows: bool = False) -> list[FileEntry]:
    """The files of an open table's version.

    Args:
        handle: the table.
        with_deleted_rows: whether rows that deletion vectors delete may be read with the others.

    Raises:
        StoreError: the table is partitioned by a type that the platform does not write, or has deletion vectors.
    """
    if not with_deleted_rows and _has_deletion_vectors(handle):
        raise StoreError(deleted_by_vectors(handle.table_uri))
    return file_entries(pa.table(handle.get_add_actions(flatten=False)))


def deleted_by_vectors(table: str) -> str:
    """The message for a table whose rows the platform can't read, since it applies no deletion vectors."""
    return (
        f"{table} has rows that deletion vectors delete, which the platform does not apply: it would read the rows "
        f"still. Remove them from the files with Spark: REORG TABLE delta.`{table}` APPLY (PURGE)"
    )


def _has_deletion_vectors(handle: DeltaTable) -> bool:
    if DELETION_VECTORS not in (handle.protocol().reader_features or ()):
        return False
    return any(len(batch) for batch in pa.RecordBatchReader.from_stream(handle.deletion_vectors()))


def live_paths(handle: DeltaTable) -> Iterator[str]:
    """The paths of the files of an open table's version, under its folder (`FileEntry.relative_path`)."""
    paths = pa.table(handle.get_add_actions(flatten=False)).column("path")
    return (unquote(path) for chunk in paths.chunks for path in chunk.to_pylist())


def file_entries(actions: pa.Table) -> list[FileEntry]:
    """The files of delta-rs's table of add actions, in its order.

    Args:
        actions: columns `path` (string), `size_bytes` (int64) and, for a partitioned table, `partition` (struct of
            one field per partition column); other columns are ignored.

    Raises:
        StoreError: see `live_files`.
    """
    wanted = [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
    rows = actions.select(wanted).to_pylist()
    return [FileEntry(row["path"], row["size_bytes"], _texts(row.get("partition") or {})) for row in rows]


def _texts(partition: Mapping[str, object]) -> dict[str, str | None]:
    return {column: _text(value) for column, value in partition.items()}


def _text(value: object) -> str | None:
    """A partition value as the log writes it."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "isoformat") and not hasattr(value, "hour"):
        return str(value.isoformat())
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise StoreError(
        f"rows can't be removed from a table that is partitioned by values of type {type(value).__name__}; "
        "only strings, dates and integers can"
    )
