"""The codec of Delta transaction logs: the paths, encoding and decoding of entries, and the content of actions.

An entry is one commit of a table. It has one JSON object per line, each of them one action.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries", "Actions" and "Per-file Statistics".
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias
from urllib.parse import quote, unquote

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.delta.data_files import DataFile
from gamelake.model.errors import StoreError
from gamelake.objects.store import Location, Store

LOG_FOLDER = "_delta_log"
ENGINE = "Gamelake/0.1"

# Keys that the platform adds to commitInfo.
# The note of a batch: `application/batch`.
BATCH_NOTE = "gamelake.batch"
# The note of an erasure: its run.
ERASURE_NOTE = "gamelake.erasure"
# The note of a rewrite: records were decoded again, and their rows replace the same number of rows.
REBUILT_NOTE = "gamelake.rebuilt"
# The application ids of replays begin with this. A replay's rows are as old as the records that it reads.
REPLAY = "replay-"

# The table feature with which other writers delete rows without a rewrite of their files.
DELETION_VECTORS = "deletionVectors"

# One line of an entry: the kind of the action ("add", "txn", ...), and its content.
Action: TypeAlias = dict[str, Any]

_ENTRIES_AT_ONCE = 1_024
_SCHEMES = frozenset({"file", "s3"})


# Entries in the store.


def entry_path(table: str, version: int) -> str:
    """Return the path of a version's log entry."""
    return f"{table}/{LOG_FOLDER}/{version:020d}.json"


def entry_versions(store: Store, table: str, after: int = -1) -> list[int]:
    """List the versions after `after` that have a log entry, in ascending order; an object store lists only these."""
    beginning = entry_path(table, after) if after >= 0 else None
    names = (each.path.rsplit("/", 1)[-1] for each in store.objects(f"{table}/{LOG_FOLDER}", beginning))
    versions = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(version) for version in versions if version.isdigit())


def entries_after(store: Store, table: str, version: int) -> Iterator[tuple[int, bytes]]:
    """List the versions after a version, and yield them with their entries, in ascending order.

    Entries are read ahead. Versions may be missing between them. Use this for a history, and `following_entries` for
    the last few commits.
    """
    wanted = entry_versions(store, table, version)
    # In portions: a history of weeks has hundreds of thousands of paths.
    for start in range(0, len(wanted), _ENTRIES_AT_ONCE):
        versions = wanted[start : start + _ENTRIES_AT_ONCE]
        contents = store.get_all([entry_path(table, each) for each in versions])
        found = zip(versions, contents, strict=True)
        yield from ((each, content) for each, content in found if content is not None)


def following_entries(store: Store, table: str, version: int) -> Iterator[tuple[int, bytes]]:
    """Yield the versions after a version with their entries, in ascending order, up to the first that is missing.

    There is no listing, but one request for each entry, so use this for a few commits.
    """
    while (content := store.get(entry_path(table, version + 1))) is not None:
        version += 1
        yield version, content


def preceding_entries(store: Store, table: str, version: int) -> Iterator[tuple[int, list[Action]]]:
    """Yield the versions from `version` down with their decoded entries, up to the first that is missing.

    Raises:
        ValueError: see `decode_entry`.
    """
    while (content := store.get(entry_path(table, version))) is not None:
        yield version, decode_entry(content)
        version -= 1


def encode_entry(actions: Iterable[Action]) -> bytes:
    """Encode a log entry as UTF-8, one action per line, without JSON escapes of non-ASCII characters.

    delta-rs and the Delta kernel decode the escapes of every second plane from U+20000 on to wrong characters; see
    docs/upstream/surrogate-pairs.md.
    """
    lines = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions)
    return "\n".join(lines).encode()


def decode_entry(content: bytes) -> list[Action]:
    """Decode the actions of a log entry, in order.

    Raises:
        ValueError: the entry is damaged, or has no action because the store has responded with an empty body.

    Example:
        >>> decode_entry(encode_entry([transaction_action("import", 7, now=1)]))
        [{'txn': {'appId': 'import', 'version': 7, 'lastUpdated': 1}}]
    """
    require_actions(content)
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def require_actions(content: bytes) -> None:
    """Check that a log entry is not empty: Delta's readers mistake an empty entry for a commit without changes.

    Raises:
        ValueError: the entry is empty.
    """
    if not content.strip():
        raise ValueError("the entry has no action; the store may have responded with an empty body: try again")


# Content of actions.


def contents_of(actions: Iterable[Action], kind: str) -> Iterator[Action]:
    """Return the contents of an entry's actions of one kind, such as "add", in order."""
    return (action[kind] for action in actions if kind in action)


def commit_info_of(actions: Iterable[Action]) -> Mapping[str, Any]:
    """Return the content of an entry's commitInfo, empty if it has none."""
    return next(contents_of(actions, "commitInfo"), {})


def transactions_of(actions: Iterable[Action]) -> list[str]:
    """Return the transactions of an entry as `application/version`, in order."""
    return [f"{each['appId']}/{each['version']}" for each in contents_of(actions, "txn")]


def changes_rows(actions: Iterable[Action], kinds: Sequence[str] = ("add", "remove")) -> bool:
    """Return True if an entry changes the table's rows; False if it only distributes them over other files.

    Args:
        actions: of the entry.
        kinds: the kinds of actions to check.
    """
    return any(action[kind]["dataChange"] for action in actions for kind in kinds if kind in action)


def row_count(add: Action) -> int:
    """Return the number of rows in the file of an add action, 0 if it has no statistics."""
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 0))


def is_revision(info: Mapping[str, Any]) -> bool:
    """Return True if a commit, according to its commitInfo, has restored, replayed or backfilled rows."""
    return (
        info.get("operation") == "RESTORE" or REBUILT_NOTE in info or str(info.get(BATCH_NOTE, "")).startswith(REPLAY)
    )


# Actions to write.


def now_milliseconds() -> int:
    """Return the current time in milliseconds since 1970, the unit of all times in a log."""
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
    """Return the action that describes a commit.

    Args:
        now: the time of the commit, in milliseconds since 1970.
        operation: the name that `DESCRIBE HISTORY` shows.
        parameters: the operation's parameters.
        metrics: the operation's metrics.
        is_blind_append: True if the commit adds files without having read the table.
        notes: keys of the platform's own, such as `BATCH_NOTE`.
    """
    info: dict[str, Any] = {"timestamp": now, "operation": operation, "operationParameters": dict(parameters)}
    if metrics:
        # Delta's metrics are strings.
        info["operationMetrics"] = {name: str(count) for name, count in metrics.items()}
    info |= {"isBlindAppend": is_blind_append, "engineInfo": ENGINE, **(notes or {})}
    return {"commitInfo": info}


def transaction_action(app_id: str, version: int, now: int) -> Action:
    """Return the action that records the last transaction of an application in a table."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": now}}


def protocol_action(reader: int, writer: int) -> Action:
    """Return the action that sets the protocol versions that a table requires."""
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """The content of a metaData action.

    Attributes:
        table_id: the table's id, which never changes.
        name: for readers.
        description: for readers; if None, the action has no description.
        schema: the Delta schema as JSON.
        partition_by: the partition columns, in order.
        properties: the table's properties.
        created: when the table was created, in milliseconds since 1970.
    """

    table_id: str
    name: str | None
    description: str | None
    schema: str
    partition_by: Sequence[str]
    properties: Mapping[str, str]
    created: int | None

    @classmethod
    def of(cls, handle: DeltaTable, schema: str, description: str | None) -> Self:
        """Return the metadata of an open table with another schema, as JSON, and another description."""
        metadata = handle.metadata()
        return cls(
            table_id=str(metadata.id),
            name=metadata.name,
            description=description,
            schema=schema,
            partition_by=metadata.partition_columns,
            properties=metadata.configuration,
            created=metadata.created_time,
        )

    def action(self) -> Action:
        """Return the metaData action."""
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
    """Return the action that adds a file with new data; `now` is in milliseconds since 1970."""
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
    """Return the action that removes a file and its rows from a table; `now` is in milliseconds since 1970."""
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
    """Return an add or remove action for a commit that only rewrites: readers of the table's changes skip it."""
    return {kind: {**content, "dataChange": False} for kind, content in action.items()}


# Live files.


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the log names it.

    Attributes:
        path: percent-encoded, under the table's folder; absolute in a shallow clone.
        size: in bytes.
        partition: partition values as strings, by column.
    """

    path: str
    size: int
    partition: Mapping[str, str | None] = field(hash=False)

    @classmethod
    def added_by(cls, add: Action) -> Self:
        """Return the file that the content of an add action names."""
        return cls(add["path"], add["size"], add["partitionValues"])

    @classmethod
    def of(cls, file: DataFile) -> Self:
        """Return a written file as the log will name it."""
        return cls(quote(file.path), file.size, file.partition)

    @property
    def relative_path(self) -> str:
        """The decoded path of the file under the table's folder; its absolute path in a shallow clone."""
        return unquote(self.path)


def object_path(location: Location, table: str, place: str) -> str:
    """Return the path of a file inside the lakehouse.

    Args:
        location: of the lakehouse.
        table: the path of the table that names the file.
        place: the file's path (`FileEntry.relative_path`).

    Raises:
        StoreError: the file is outside of this lakehouse.
    """
    scheme = place.partition(":")[0]
    if scheme not in _SCHEMES:
        return f"{table}/{place}"
    # Spark writes file:/path where others write file:///path.
    plain = place.replace(":///", ":/", 1)
    root = unquote(location.uri).rstrip("/").replace(":///", ":/", 1)
    if not plain.startswith(f"{root}/"):
        raise StoreError(f"{table} names a file of another lakehouse: {place}; copy the table, or drop it")
    return plain.removeprefix(f"{root}/")


def live_files(handle: DeltaTable, *, with_deleted_rows: bool = False) -> list[FileEntry]:
    """Return the files of an open table's version, in delta-rs's order.

    Args:
        handle: the table.
        with_deleted_rows: True if the caller may read rows that deletion vectors delete.

    Raises:
        StoreError: the table is partitioned by a type that the platform does not write, or has deletion vectors and
            `with_deleted_rows` is False.

    Example:
        >>> from deltalake import write_deltalake
        >>> write_deltalake(location.child("silver/notes"), pa.table({"text": ["first"]}))
        >>> [file.size > 0 for file in live_files(DeltaTable(location.child("silver/notes")))]
        [True]
    """
    if not with_deleted_rows and _has_deletion_vectors(handle):
        raise StoreError(deleted_by_vectors(handle.table_uri))
    return file_entries(pa.table(handle.get_add_actions(flatten=False)))


def deleted_by_vectors(table: str) -> str:
    """Return the message for a table whose rows the platform can't read, since it applies no deletion vectors."""
    return (
        f"{table} has rows that deletion vectors delete. The platform does not apply deletion vectors and would still "
        f"read these rows. Remove them from the files with Spark: REORG TABLE delta.`{table}` APPLY (PURGE)"
    )


def _has_deletion_vectors(handle: DeltaTable) -> bool:
    if DELETION_VECTORS not in (handle.protocol().reader_features or ()):
        return False
    return any(len(batch) for batch in pa.RecordBatchReader.from_stream(handle.deletion_vectors()))


def live_paths(handle: DeltaTable) -> Iterator[str]:
    """Return the decoded paths of the files of an open table's version; see `FileEntry.relative_path`."""
    paths = pa.table(handle.get_add_actions(flatten=False)).column("path")
    return (unquote(path) for chunk in paths.chunks for path in chunk.to_pylist())


def file_entries(actions: pa.Table) -> list[FileEntry]:
    """Return the files of delta-rs's table of add actions, in its order.

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
    """Return a partition value in the log's form."""
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
