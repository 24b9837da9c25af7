"""Checks Delta tables against the protocol and against their data; it shares no code with the platform's writer.

Entries are read as JSON, checkpoints of the log by pyarrow, and the values of data files by DuckDB.
Source: Delta Transaction Log Protocol, headings "Actions", "Action Reconciliation", "Checkpoints", "Last Checkpoint
File", "Per-file Statistics", "Requirements for Readers", "Schema Serialization Format".
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import unquote
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

Leaf = tuple[str, ...]
Json: TypeAlias = Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_ENCODED = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})+")
# The keys that an action must have. No other actions exist.
_REQUIRED: dict[str, dict[str, type]] = {
    "add": {"path": str, "partitionValues": dict, "size": int, "modificationTime": int, "dataChange": bool},
    "remove": {"path": str, "dataChange": bool},
    "cdc": {"path": str, "partitionValues": dict, "size": int, "dataChange": bool},
    "txn": {"appId": str, "version": int},
    "metaData": {"id": str, "format": dict, "schemaString": str, "partitionColumns": list, "configuration": dict},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
    "domainMetadata": {"domain": str, "configuration": str, "removed": bool},
    "commitInfo": {},
}
# Arrow's names of the types that a data file has for a Delta type.
_ARROW = {
    "string": "string", "long": "int64", "integer": "int32", "double": "double", "float": "float", "boolean": "bool",
    "binary": "binary", "date": "date32[day]",
}  # fmt: skip


def problems(root: Path) -> list[str]:
    """What is wrong with the tables in a folder and the folders below: a sentence each, after the table's path."""
    logs = sorted(root.rglob("_delta_log"))
    assert logs, f"there are no tables in {root}"
    return [f"{log.parent.relative_to(root)}: {each}" for log in logs for each in table_problems(log.parent)]


def table_problems(folder: Path) -> list[str]:
    """What is wrong with a table: with its log, with the checkpoints of its log, and with its live files."""
    table = _Table.read(folder)
    if table.found:
        return table.found  # of files that a damaged log names, nothing can be said
    table.found += table.last_checkpoint_problems()
    for path, add in sorted(table.live.items()):
        table.found += [f"{path}: {each}" for each in _file_problems(table, path, add)]
    return table.found


@dataclass
class _Table:
    """A table's state as far as its log was replayed; `found` is what was wrong with the log."""

    folder: Path
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Self:
        log = folder / "_delta_log"
        entries = {int(name[1]): each for each in log.iterdir() if (name := _ENTRY.fullmatch(each.name))}
        checkpoints = {int(name[1]): each for each in log.iterdir() if (name := _CHECKPOINT.fullmatch(each.name))}
        table = cls(folder)
        # Log cleanup deletes the entries before a checkpoint.
        reached = min(entries, default=0) - 1
        if reached >= 0:
            reached = min((each for each in checkpoints if each >= reached), default=-1)
            if reached < 0:
                table.found.append(f"the log begins at version {min(entries)}, and no checkpoint is older")
                return table
            table._begin(checkpoints[reached])
        wanted = range(reached + 1, max([*entries, reached]) + 1)
        table.found += [f"version {each} is missing" for each in wanted if each not in entries]
        for version in (each for each in wanted if each in entries):
            table._take(version, entries[version].read_bytes())
            if version in checkpoints:
                table.found += [f"checkpoint {version}: {each}" for each in table._differences(checkpoints[version])]
        return table

    # The log.

    def _begin(self, checkpoint: Path) -> None:
        state = _state_of(checkpoint)
        self.live, self.transactions = state.live, state.transactions
        self.protocol, self.metadata, self.removed = state.protocol, state.metadata, state.removed

    def _take(self, version: int, content: bytes) -> None:
        try:
            lines = [json.loads(line) for line in content.decode().splitlines()]
        except ValueError as error:
            self.found.append(f"version {version}: {error}")
            return
        found = list(_form_problems(lines)) or [*self._metadata_problems(version, lines), *self._commit_problems(lines)]
        self.found += [f"version {version}: {each}" for each in found]

    def _metadata_problems(self, version: int, lines: list[dict[str, Any]]) -> Iterator[str]:
        if version == 0 and Counter(kind for line in lines for kind in line)["metaData"] == 0:
            yield "has no metaData, which the first version needs"
        for line in lines:
            if "protocol" in line:
                yield from _protocol_problems(self.protocol, line["protocol"])
                self.protocol = line["protocol"]
            if "metaData" in line:
                yield from _schema_problems(self.metadata, line["metaData"])
                self.metadata = line["metaData"]
        if not self.protocol:
            yield "no protocol is set"

    def _commit_problems(self, lines: list[dict[str, Any]]) -> Iterator[str]:
        files = Counter(unquote(line[kind]["path"]) for line in lines for kind in ("add", "remove") if kind in line)
        yield from (f"{path} is named by two actions" for path, times in files.items() if times > 1)
        for line in lines:
            for kind, content in line.items():
                if kind == "add":
                    yield from self._add_problems(content)
                elif kind == "remove":
                    yield from self._remove_problems(content)
                elif kind == "txn":
                    yield from self._transaction_problems(content)

    def _add_problems(self, add: dict[str, Any]) -> Iterator[str]:
        path = unquote(add["path"])
        if set(add["partitionValues"]) != set(self.metadata["partitionColumns"]):
            yield f"{path} has values of the partition columns {sorted(add['partitionValues'])}"
        if not all(value is None or isinstance(value, str) for value in add["partitionValues"].values()):
            yield f"{path} has a partition value that is not a text"
        if path in self.live and add["dataChange"]:
            yield f"{path} is a file of the table already"
        self.live[path] = add
        self.removed.discard(path)

    def _remove_problems(self, remove: dict[str, Any]) -> Iterator[str]:
        path = unquote(remove["path"])
        if self.live.pop(path, None) is None:
            yield f"{path} is removed, and no file of the table"
        if remove.get("extendedFileMetadata") and not {"partitionValues", "size"} <= set(remove):
            yield f"{path} is removed with extended metadata that lacks its partition or its size"
        self.removed.add(path)

    def _transaction_problems(self, transaction: dict[str, Any]) -> Iterator[str]:
        name, version = transaction["appId"], transaction["version"]
        if version <= self.transactions.get(name, -1):
            yield f"transaction {name} goes from {self.transactions[name]} to {version}"
        self.transactions[name] = version

    # Checkpoints of the log.

    def _differences(self, checkpoint: Path) -> Iterator[str]:
        """Return how a checkpoint differs from the entries up to its version."""
        state = _state_of(checkpoint)
        if _as_listed(state.live) != _as_listed(self.live):
            yield f"has the files {sorted(state.live)}, the entries {sorted(self.live)}, or one of them differs"
        if state.removed - self.removed:
            yield f"removes {sorted(state.removed - self.removed)}"
        if state.transactions != self.transactions:
            yield f"has the transactions {state.transactions}, the entries {self.transactions}"
        if any(state.protocol.get(key) != self.protocol[key] for key in _REQUIRED["protocol"]):
            yield f"has the protocol {state.protocol}, the entries {self.protocol}"
        for key in ("id", "partitionColumns", "configuration"):
            if state.metadata.get(key) != self.metadata[key]:
                yield f"has {key} {state.metadata.get(key)}, the entries {self.metadata[key]}"
        if json.loads(state.metadata["schemaString"]) != json.loads(self.metadata["schemaString"]):
            yield "has another schema than the entries"

    def last_checkpoint_problems(self) -> Iterator[str]:
        """Yield a problem if `_last_checkpoint` does not name a checkpoint as it is."""
        hint = self.folder / "_delta_log/_last_checkpoint"
        if not hint.exists():
            return
        said = json.loads(hint.read_bytes())
        path = self.folder / f"_delta_log/{said['version']:020d}.checkpoint.parquet"
        if not path.exists():
            yield f"_last_checkpoint names version {said['version']}, which has no checkpoint"
        elif (actions := pq.read_metadata(path).num_rows) != said["size"]:
            yield f"_last_checkpoint says {said['size']} actions, the checkpoint has {actions}"


def _state_of(checkpoint: Path) -> _Table:
    state = _Table(checkpoint.parent.parent)
    for row in pq.read_table(checkpoint).to_pylist(maps_as_pydicts="strict"):
        [(kind, content)] = [(kind, content) for kind, content in row.items() if content is not None]
        if kind == "add":
            state.live[unquote(content["path"])] = content
        elif kind == "remove":
            state.removed.add(unquote(content["path"]))
        elif kind == "txn":
            state.transactions[content["appId"]] = content["version"]
        elif kind == "protocol":
            state.protocol = content
        elif kind == "metaData":
            state.metadata = content
    return state


def _as_listed(live: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    return {
        path: (add["size"], dict(add["partitionValues"]), json.loads(add.get("stats") or "{}"))
        for path, add in live.items()
    }


def _form_problems(lines: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with an entry's actions, each taken alone, or with their number."""
    kinds = Counter(kind for line in lines for kind in line)
    names = Counter(line["txn"].get("appId") for line in lines if "txn" in line)
    yield from (
        f"has {kinds[kind]} actions {kind}" for kind in ("protocol", "metaData", "commitInfo") if kinds[kind] > 1
    )
    yield from (f"has {times} transactions of {name}" for name, times in names.items() if times > 1)
    for line in lines:
        if len(line) != 1:
            yield f"has a line with the actions {sorted(line)}"
        for kind, content in line.items():
            if kind not in _REQUIRED:
                yield f"has an action {kind}"
            wrong = [key for key, of in _REQUIRED.get(kind, {}).items() if type(content.get(key)) is not of]
            yield from (f"{kind} has {key} {content.get(key)!r}" for key in wrong)
            if "path" in content and not _ENCODED.fullmatch(content["path"]):
                yield f"{kind} has the path {content['path']!r}, which is not percent-encoded"


def _protocol_problems(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for version, features, since in (
        ("minReaderVersion", "readerFeatures", 3),
        ("minWriterVersion", "writerFeatures", 7),
    ):
        if now[version] < before.get(version, 1):
            yield f"{version} goes from {before[version]} to {now[version]}"
        if (now[version] >= since) != (now.get(features) is not None):
            yield f"{version} is {now[version]}, and {features} is {now.get(features)}"


def _schema_problems(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    UUID(now["id"])
    if before and (before["id"], before["partitionColumns"]) != (now["id"], now["partitionColumns"]):
        yield "the table's id or its partition columns change"
    if now["format"].get("provider") != "parquet":
        yield f"the format is {now['format']}"
    if not all(isinstance(text, str) for text in now["configuration"].values()):
        yield f"the configuration has a value that is not a text: {now['configuration']}"
    schema = json.loads(now["schemaString"])
    yield from _struct_problems(schema, "the schema")
    have = {each["name"]: each["type"] for each in schema["fields"]}
    if missing := set(now["partitionColumns"]) - set(have):
        yield f"the schema lacks the partition columns {sorted(missing)}"
    if before:
        gone = {_name(leaf) for leaf in leaves(before)} - {_name(leaf) for leaf in leaves(now)}
        yield from (f"the schema loses {each}" for each in sorted(gone))


def _struct_problems(struct: Mapping[str, Any], place: str) -> Iterator[str]:
    names = Counter(each["name"].lower() for each in struct["fields"])
    yield from (f"{place} has {times} columns {name}" for name, times in names.items() if times > 1)
    for each in struct["fields"]:
        if set(each) != {"name", "type", "nullable", "metadata"}:
            yield f"{place} has {each['name']} with the keys {sorted(each)}"
        yield from _type_problems(each["type"], f"{place}.{each['name']}")


def _type_problems(kind: Json, place: str) -> Iterator[str]:
    if isinstance(kind, str):
        if kind not in {*_ARROW, "timestamp"} and not re.fullmatch(r"decimal\(\d+,\d+\)", kind):
            yield f"{place} is a {kind}"
    elif kind["type"] == "struct":
        yield from _struct_problems(kind, place)
    elif kind["type"] == "array":
        yield from _type_problems(kind["elementType"], f"{place}.element")
    else:
        yield from _type_problems(kind["keyType"], f"{place}.key")
        yield from _type_problems(kind["valueType"], f"{place}.value")


def leaves(metadata: Mapping[str, Any]) -> dict[Leaf, str]:
    """The columns without fields of their own of a metaData action, with their types; "array" and "map" are such."""
    return dict(_leaves((), json.loads(metadata["schemaString"])))


def _leaves(above: Leaf, struct: Mapping[str, Any]) -> Iterator[tuple[Leaf, str]]:
    for each in struct["fields"]:
        kind, place = each["type"], (*above, each["name"])
        if isinstance(kind, str):
            yield place, kind
        elif kind["type"] == "struct":
            yield from _leaves(place, kind)
        else:
            yield place, kind["type"]


def _name(leaf: Iterable[str]) -> str:
    return ".".join(leaf)


# Data files.


def _file_problems(table: _Table, path: str, add: Mapping[str, Any]) -> Iterator[str]:
    file = Path(path.removeprefix("file://")) if path.startswith("file:") else table.folder / path
    if not file.is_file():
        yield "does not exist"
        return
    if file.stat().st_size != add["size"]:
        yield f"has {file.stat().st_size} bytes, the log says {add['size']}"
    declared, partition = leaves(table.metadata), table.metadata["partitionColumns"]
    # Spark's OPTIMIZE also writes partition columns into files, which the protocol allows.
    kept = {leaf: kind for leaf, kind in declared.items() if leaf[0] not in partition}
    have = dict(_arrow_leaves((), pq.read_schema(file)))
    yield from (f"has a column {_name(leaf)} that the table has not" for leaf in have if leaf not in declared)
    for leaf, kind in kept.items():
        if leaf in have and not _is_stored_as(kind, have[leaf]):
            yield f"has {_name(leaf)} as {have[leaf]}, the schema as {kind}"
    yield from _statistics_problems(file, json.loads(add.get("stats") or "{}"), kept, have)


def _arrow_leaves(above: Leaf, fields: Iterable[pa.Field]) -> Iterator[tuple[Leaf, str]]:
    for each in fields:
        name = str(each.type)
        if name.startswith("struct<"):
            yield from _arrow_leaves((*above, each.name), each.type)
        else:
            yield (*above, each.name), name


def _is_stored_as(kind: str, arrow: str) -> bool:
    if kind == "timestamp":
        return arrow.startswith("timestamp[")
    if kind in {"array", "map"}:
        return arrow.startswith({"array": "list<", "map": "map<"}[kind])
    if kind.startswith("decimal"):
        return arrow.replace(" ", "") == kind.replace("decimal", "decimal128")
    return _ARROW[kind] == arrow


def _statistics_problems(
    file: Path, statistics: Mapping[str, Any], kept: Mapping[Leaf, str], have: Mapping[Leaf, str]
) -> Iterator[str]:
    rows, found = _counted(file, [leaf for leaf in have if leaf in kept], kept)
    if statistics.get("numRecords") != rows:
        yield f"has {rows} rows, the log says {statistics.get('numRecords')}"
    trees = {key: dict(_flat((), statistics.get(key) or {})) for key in ("nullCount", "minValues", "maxValues")}
    for key, tree in trees.items():
        yield from (f"{key} has {_name(leaf)}, which is not a column of the table" for leaf in tree if leaf not in kept)
    for leaf, nulls in trees["nullCount"].items():
        if (count := found[leaf].nulls if leaf in found else rows) != nulls:
            yield f"{_name(leaf)} has {count} nulls, the log says {nulls}"
    if set(trees["minValues"]) != set(trees["maxValues"]):
        yield "has a column with one bound"
    for leaf in set(trees["minValues"]) & set(kept):
        least, greatest = trees["minValues"][leaf], trees["maxValues"].get(leaf)
        values = found.get(leaf, _Values(rows, None, None))
        if not _bounds(kept[leaf], least, greatest, values):
            yield f"{_name(leaf)}: {values.least!r} to {values.greatest!r}, the log says {least!r} to {greatest!r}"


def _flat(above: Leaf, tree: Mapping[str, Any]) -> Iterator[tuple[Leaf, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat((*above, name), value)
        else:
            yield (*above, name), value


@dataclass(frozen=True)
class _Values:
    """The values of a column in a file: the number of nulls, the least and the greatest other.

    Times in microseconds.
    """

    nulls: int
    least: Any
    greatest: Any


def _counted(file: Path, columns: list[Leaf], kept: Mapping[Leaf, str]) -> tuple[int, dict[Leaf, _Values]]:
    """A file's rows, and what its columns hold, by its values alone: DuckDB computes from no statistics."""
    asked = ["count(*)"]
    for leaf in columns:
        value = ".".join('"' + step.replace('"', '""') + '"' for step in leaf)
        asked.append(f"count(*) - count({value})")
        bounded = kept[leaf] not in {"array", "map", "binary"}
        as_number = "epoch_us({})" if kept[leaf] == "timestamp" else "{}"
        asked += [as_number.format(f"{of}({value})") for of in ("min", "max")] if bounded else ["NULL", "NULL"]
    with duckdb.connect() as connection:
        # The filter is true for each row, and no statistics of the file can say so.
        query = f"SELECT {', '.join(asked)} FROM read_parquet(?, hive_partitioning = false) WHERE random() >= 0"  # noqa: S608
        row = connection.execute(query, [str(file)]).fetchone()
    assert row is not None
    return row[0], {leaf: _Values(*row[1 + 3 * at : 4 + 3 * at]) for at, leaf in enumerate(columns)}


def _bounds(kind: str, least: Json, greatest: Json, values: _Values) -> bool:
    """Return True if bounds are those of a column's values; texts may be shortened, and times cut to milliseconds."""
    if values.least is None or (kind in {"double", "float"} and isnan(values.greatest)):
        return False
    if kind == "string":
        return bool(least <= values.least and values.greatest <= greatest)
    if kind == "timestamp":
        return _is_cut(least, values.least) and _is_cut(greatest, values.greatest)
    if kind == "date":
        least, greatest = date.fromisoformat(least), date.fromisoformat(greatest)
    elif kind.startswith("decimal"):
        least, greatest = Decimal(str(least)), Decimal(str(greatest))
    return bool((least, greatest) == (values.least, values.greatest))


def _is_cut(text: str, microseconds: int) -> bool:
    bound = (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    decimals = re.search(r"\.(\d+)", text)
    return 0 <= microseconds - bound < (1_000 if decimals is None or len(decimals[1]) <= 3 else 1)
