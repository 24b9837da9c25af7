"""Comments of tables and columns: written to the table's log, shown by every engine.

Source: Delta Transaction Log Protocol, headings "Change Metadata", "Schema Serialization Format" and "Column Metadata".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Comments:
    """A table's description, and comments of its columns by dotted path."""

    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


NO_COMMENTS = Comments()
CommentsOf: TypeAlias = Callable[[str], Comments]


def no_comments(_table: str) -> Comments:
    """No comments, for any table."""
    return NO_COMMENTS


def commented(schema: str, comments: Comments) -> str:
    """A Delta schema (JSON) with comments of its columns; a column without a new comment keeps its own."""
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
    """The columns of a Delta schema that have no comment, by dotted path."""
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
