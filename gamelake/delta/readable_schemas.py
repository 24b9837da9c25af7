"""Schemas in Delta logs that delta-rs can't read because their columns are nested too deeply, and their readable parts.

delta-rs writes a schema of any depth, but reads only 128 levels of JSON. A table with a deeper schema can't be opened.
"""

import json
from functools import lru_cache
from typing import Any

from deltalake import Schema


def unreadable_schema(text: str) -> str | None:
    """Return the reason why delta-rs can't read the JSON of a schema; None if it can."""
    try:
        Schema.from_json(text)
    except ValueError as error:
        return str(error)
    return None


# Each batch asks again for the same schema of each table.
@lru_cache(maxsize=1024)
def readable_schema(text: str) -> str:
    """Return the JSON of a schema without the columns that delta-rs can't read; the same text if it can read all."""
    if unreadable_schema(text) is None:
        return text
    schema: dict[str, Any] = json.loads(text)
    return json.dumps(
        schema | {"fields": [field for field in schema["fields"] if not _too_deep(field)]}, ensure_ascii=False
    )


def unreadable_columns(text: str) -> list[str]:
    """Return the names of the columns that delta-rs can't read, in the order of the schema's JSON."""
    return [str(field["name"]) for field in json.loads(text)["fields"] if _too_deep(field)]


def _too_deep(field: dict[str, Any]) -> bool:
    return unreadable_schema(json.dumps({"type": "struct", "fields": [field]})) is not None
