"""The actions that entries of a table's log are made of, each made in one place.

Source: Delta Transaction Log Protocol, headings "Add File and Remove File", "Transaction Identifiers".
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.model.errors import StoreError
from gamelake.storage.data_files import DataFile
from gamelake.storage.store import Location

_SCHEMES = frozenset({"file", "s3"})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the log has it: its path, percent-encoded, its size in bytes, its partition values as texts."""

    path: str
    size: int
    partition: Mapping[str, str | None] = field(hash=False)

    @property
    def place(self) -> str:
        """Where the file stands under the table's folder."""
        return unquote(self.path)


def object_path(location: Location, table: str, place: str) -> str:
    """Where a file stands in the lakehouse: under its table's folder, or where the absolute path of a clone names it.

    Raises:
        StoreError: it stands in no folder of this lakehouse.
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


def live_files(handle: DeltaTable) -> list[FileEntry]:
    """The files of an open table's version.

    Raises:
        StoreError: the table is partitioned by values of a type that is not ours to write.
    """
    return entries_of(pa.table(handle.get_add_actions(flatten=False)))


def entries_of(actions: pa.Table) -> list[FileEntry]:
    """The files that delta-rs's table of add actions names; see `live_files`."""
    wanted = [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
    rows = actions.select(wanted).to_pylist()
    return [FileEntry(row["path"], row["size_bytes"], _texts(row.get("partition") or {})) for row in rows]


def _texts(partition: Mapping[str, object]) -> dict[str, str | None]:
    return {column: _text(value) for column, value in partition.items()}


def _text(value: object) -> str | None:
    """A partition value as the log has it."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "isoformat") and not hasattr(value, "hour"):
        return str(value.isoformat())
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise StoreError(f"rows can't be taken out of a table that is partitioned by values such as {type(value).__name__}")


ENGINE = "Gamelake/0.1"


def add_action(file: DataFile, now: int) -> dict[str, Any]:
    """The action that adds a file with new data."""
    add = {
        "path": file.path,
        "partitionValues": file.partition,
        "size": file.size,
        "modificationTime": now,
        "dataChange": True,
        "stats": file.statistics,
    }
    return {"add": add}


def remove_action(file: FileEntry, now: int) -> dict[str, Any]:
    """The action that takes a file, and with it its rows, out of a table."""
    remove = {
        "path": file.path,
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": file.partition,
        "size": file.size,
    }
    return {"remove": remove}


def of_the_same_rows(action: dict[str, Any]) -> dict[str, Any]:
    """The action of a commit that only rewrites: whoever follows the table's changes need not look."""
    return {kind: {**content, "dataChange": False} for kind, content in action.items()}


def now_milliseconds() -> int:
    """This moment as Delta's log has it."""
    return int(time.time() * 1000)


def encoded(actions: list[dict[str, Any]]) -> bytes:
    """A log entry's text."""
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode()
