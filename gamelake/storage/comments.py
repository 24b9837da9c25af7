"""What a table and its columns mean, in the table's own log, where every engine shows it.

Source: Delta Transaction Log Protocol, headings "Change Metadata", "Schema Serialization Format" and "Column Metadata".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Comments:
    """A table's description, and what its columns mean, by dotted path."""

    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


NO_COMMENTS = Comments()
CommentsOf: TypeAlias = Callable[[str], Comments]


def no_comments(_table: str) -> Comments:
    """For tables of which nothing is known."""
    return NO_COMMENTS


def commented(schema: str, comments: Comments) -> str:
    """A Delta schema with its columns' comments; a column of which nothing is known keeps what it has."""
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
    # What a list or a map holds is found by the path of the list or map itself.
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
