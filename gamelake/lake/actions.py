"""The actions that entries of a table's log are made of, each made in one place.

Source: Delta Transaction Log Protocol, headings "Add File and Remove File", "Transaction Identifiers".
"""

import json
import time
from typing import Any

from gamelake.lake.datafile import DataFile
from gamelake.lake.file_entries import FileEntry

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
