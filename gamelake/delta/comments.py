"""Comments of tables and columns: written to the table's log, shown by every engine.

Source: Delta Transaction Log Protocol, headings "Change Metadata", "Schema Serialization Format" and "Column Metadata".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from deltalake import DeltaTable

from gamelake.delta.commits import CommitConflictError, commit_with_retry, put_entry
from gamelake.delta.log.codec import Action, TableMetadata, commit_info, now_milliseconds
from gamelake.objects.store import Store


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments of a table.

    Attributes:
        description: of the table.
        columns: the comments of its columns by dotted path.
    """

    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


NO_COMMENTS = Comments()
CommentsOf: TypeAlias = Callable[[str], Comments]
_DESCRIBE_ATTEMPTS = 20


def no_comments(_table: str) -> Comments:
    """Return no comments, for any table."""
    return NO_COMMENTS


def commented(schema: str, comments: Comments) -> str:
    """Return a Delta schema with comments of its columns; a column without a new comment keeps its own.

    Args:
        schema: the JSON of the schema.
        comments: paths that the schema lacks are ignored.

    Returns:
        The JSON of the schema, the same text if there are no comments.
    """
    if not comments.columns:
        return schema
    tree = json.loads(schema)
    _comment(tree, "", comments.columns)
    return json.dumps(tree, separators=(",", ":"))


def _comment(kind: Any, path: str, meanings: Mapping[str, str]) -> None:  # noqa: ANN401 # JSON
    if not isinstance(kind, dict):
        return
    for column in kind.get("fields", ()):
        place = f"{path}{column['name']}"
        if meaning := meanings.get(place):
            column["metadata"] = {**(column.get("metadata") or {}), "comment": meaning}
        _comment(column["type"], f"{place}.", meanings)
    # The elements of a list or map have the path of the list or map itself.
    for part in ("elementType", "valueType"):
        _comment(kind.get(part), path, meanings)


def uncommented(schema: str) -> list[str]:
    """Return the dotted paths of the columns that have no comment, in the order of a Delta schema's JSON."""
    return list(_uncommented(json.loads(schema), ""))


def _uncommented(kind: Any, path: str) -> list[str]:  # noqa: ANN401 # JSON
    if not isinstance(kind, dict):
        return []
    found: list[str] = []
    for column in kind.get("fields", ()):
        place = f"{path}{column['name']}"
        found += [] if (column.get("metadata") or {}).get("comment") else [place]
        found += _uncommented(column["type"], f"{place}.")
    for part in ("elementType", "valueType"):
        found += _uncommented(kind.get(part), path)
    return found


def describe(store: Store, table: str, comments: Comments, newest: Callable[[], DeltaTable]) -> bool:
    """Commit a table's comments if they have changed.

    Args:
        store: the lakehouse.
        table: the table's path.
        comments: of the table and its columns.
        newest: opens the table at its newest version; it is called again after each conflict.

    Returns:
        True if the comments have changed and were committed.

    Raises:
        TransientError: other writers committed first at every attempt.
    """

    def attempt() -> bool:
        handle = newest()
        have, metadata = handle.schema().to_json(), handle.metadata()
        wanted = commented(have, comments)
        description = comments.description or metadata.description or ""
        if json.loads(wanted) == json.loads(have) and description == (metadata.description or ""):
            return False
        if not put_entry(store, table, handle.version() + 1, _actions(handle, wanted, description)):
            raise CommitConflictError
        return True

    return commit_with_retry(table, _DESCRIBE_ATTEMPTS, attempt)


def _actions(handle: DeltaTable, schema: str, description: str) -> list[Action]:
    info = commit_info(now_milliseconds(), "CHANGE COLUMN", {"column": "comments"}, is_blind_append=True)
    return [info, TableMetadata.of(handle, schema, description).action()]
