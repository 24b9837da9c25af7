"""A commit that changes what a table says of itself and its columns, and nothing else.

Source: Delta Transaction Log Protocol, heading "Change Metadata".
"""

import json
from collections.abc import Callable
from typing import Any

from deltalake import DeltaTable

from gamelake.errors import TransientError
from gamelake.lake.actions import ENGINE, encoded, now_milliseconds
from gamelake.lake.appends import entry_path
from gamelake.lake.comments import Comments, commented
from gamelake.lake.store import Store

_ATTEMPTS = 20


def describe(store: Store, table: str, comments: Comments, newest: Callable[[], DeltaTable]) -> bool:
    """Bring a table's comments in line, by a commit of its own; gives whether there was one to make.

    `newest` opens the table at its newest version, which other writers may have made meanwhile.

    Raises:
        TransientError: other writers were faster at every attempt.
    """
    for _ in range(_ATTEMPTS):
        handle = newest()
        have, metadata = handle.schema().to_json(), handle.metadata()
        wanted = commented(have, comments)
        description = comments.description or metadata.description or ""
        if json.loads(wanted) == json.loads(have) and description == (metadata.description or ""):
            return False
        entry = encoded(_actions(handle, wanted, description))
        if store.put_new(entry_path(table, handle.version() + 1), entry):
            return True
    raise TransientError(f"{table}: other writers were faster {_ATTEMPTS} times; try again")


def _actions(handle: DeltaTable, schema: str, description: str) -> list[dict[str, Any]]:
    metadata = handle.metadata()
    info = {
        "timestamp": now_milliseconds(),
        "operation": "CHANGE COLUMN",
        "operationParameters": {"column": "comments"},
        "isBlindAppend": True,
        "engineInfo": ENGINE,
    }
    change = {
        "id": str(metadata.id),
        "name": metadata.name,
        "description": description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": metadata.created_time,
    }
    return [{"commitInfo": info}, {"metaData": change}]
