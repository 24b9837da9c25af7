"""Files whose bounds or partition values delta-rs reads as other texts than the log has.

Logs of earlier versions have JSON escapes, of which delta-rs and the Delta kernel decode some to other characters
(docs/upstream/surrogate-pairs.md), and a log checkpoint that delta-rs wrote keeps them. A filter then skips the file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.storage.delta_log import Action

# U+10FFFF is left out: it ends shortened bounds, and what it is decoded to sorts after all texts in use, too.
_MISREAD = re.compile("[\U00020000-\U0010fffe]")


def may_be_misread(adds: Mapping[str, Action]) -> bool:
    """Whether bounds or partition values have texts that may be misread; if not, the table need not be opened."""
    return any(_MISREAD.search(text) for add in adds.values() for text in _raw(add))


def misread_files(handle: DeltaTable, adds: Mapping[str, Action]) -> list[Action]:
    """The add actions of an open table's files that delta-rs misreads, as the log has them.

    Args:
        handle: the table.
        adds: the add actions of its files by path (`TableLog.adds`), read by another decoder.
    """
    suspects = {path: texts for path, add in adds.items() if (texts := dict(_texts(add)))}
    if not suspects:
        return []
    rows = pa.table(handle.get_add_actions(flatten=True))
    columns = {name for texts in suspects.values() for name in texts} & set(rows.column_names)
    read = {unquote(row.pop("path")): row for row in rows.select(["path", *sorted(columns)]).to_pylist()}
    return [
        adds[path]
        for path, texts in suspects.items()
        if path in read and any(read[path].get(name, text) != text for name, text in texts.items())
    ]


def _raw(add: Action) -> Iterator[str]:
    yield add.get("stats") or ""
    yield from (value for value in add["partitionValues"].values() if value is not None)


def _texts(add: Action) -> Iterator[tuple[str, str]]:
    """Bounds and partition values that may be misread, by the names of their columns in delta-rs' table of files."""
    if not any(map(_MISREAD.search, _raw(add))):
        return
    statistics = json.loads(add.get("stats") or "{}")
    trees = {"min": "minValues", "max": "maxValues"}
    for name, tree in trees.items():
        yield from _leaves(name, statistics.get(tree) or {})
    yield from _leaves("partition", add["partitionValues"])


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(f"{name}.{key}", each)
    elif isinstance(value, str) and _MISREAD.search(value):
        yield name, value
