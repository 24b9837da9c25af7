"""Data files of Delta tables: their Parquet encoding, and the statistics that a commit needs."""

import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.objects.store import Store

# The number of leaf columns at the beginning of a file that have statistics; the platform's tables declare this limit.
INDEXED_COLUMNS = 32
_STRING_PREFIX = 32  # characters of a bound, the same number as Delta's own writers keep
# Characters that Hive and Spark escape in the name of a partition's folder, and NUL, which no path can have.
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_NAME = 255  # bytes, of most file systems
_HIGHEST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROW_GROUP_ROWS = 131_072


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of a table.

    Attributes:
        path: under the table's folder, in the object store's form; the log has it percent-encoded.
        size: in bytes.
        rows: the number of rows.
        partition: partition values as strings, by column.
        statistics: Delta's JSON; see `statistics`.
    """

    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    statistics: str


def new_file_name(folder: str) -> str:
    """Return a new path in a folder; it differs between attempts at the same batch too."""
    name = f"part-{uuid.uuid4()}.zstd.parquet"
    return f"{folder}/{name}" if folder else name


def partition_folder(partition: Mapping[str, str | None]) -> str:
    """Return the folder of a partition's files under the table's folder.

    The protocol requires readers to take partition values from the log, but some, such as Polars, take them from this
    path. If a value is too long for a file system's name, the path has null: without the column, Polars could not read
    the table at all.
    Source: Spark's `ExternalCatalogUtils.escapePathName` and Hive's default partition name.

    Args:
        partition: the partition values as strings, by column, in the table's order.

    Returns:
        `column=value/column=value`, or "" without partition columns.
    """
    steps: list[str] = []
    for column, value in partition.items():
        step = f"{_escaped(column)}={_escaped(value) if value else _NO_VALUE}"
        steps.append(step if len(step.encode()) <= _LONGEST_NAME else f"{_escaped(column)}={_NO_VALUE}")
    return "/".join(steps)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def write_rows(
    store: Store, table: str, rows: pa.Table, partition: Mapping[str, str | None], unique: Collection[str] = frozenset()
) -> DataFile:
    """Write rows as one file of a table; nothing is committed.

    Args:
        store: the lakehouse.
        table: the table's path.
        rows: the table's columns without its partition columns, in Delta types (`gamelake.delta.columns`); rows in any
            order.
        partition: the partition values as strings, by column, in the table's order.
        unique: see `encode_parquet`.

    Returns:
        The file, for the commit that adds it.

    Example:
        >>> file = write_rows(Store(location), "silver/notes", pa.table({"text": ["first", "second"]}), {})
        >>> file.rows, file.partition
        (2, {})
    """
    content, statistics = encode_parquet(rows, unique)
    path = new_file_name(partition_folder(partition))
    store.put(f"{table}/{path}", content.to_pybytes())
    return DataFile(path=path, size=content.size, rows=rows.num_rows, partition=dict(partition), statistics=statistics)


def encode_parquet(rows: pa.Table, unique: Collection[str]) -> tuple[pa.Buffer, str]:
    """Encode rows as Parquet and collect their statistics in one pass.

    Args:
        rows: the file's columns, without partition columns, in Delta types (`gamelake.delta.columns`).
        unique: top-level columns whose values rarely repeat. They have no dictionary, since it would save nothing.

    Returns:
        The file's bytes, and its statistics as Delta's JSON.
    """
    sink = pa.BufferOutputStream()
    collected: list[pq.FileMetaData] = []
    leaves = _leaves(rows.schema)
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        compression_level=1,
        row_group_size=_ROW_GROUP_ROWS,
        use_dictionary=[leaf.path for leaf in leaves if leaf.path not in unique and not leaf.is_dense],
        column_encoding={leaf.path: "DELTA_BINARY_PACKED" for leaf in leaves if leaf.is_dense} or None,
        metadata_collector=collected,
    )
    return sink.getvalue(), statistics(rows, collected[0])


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of a Parquet file.

    Attributes:
        path: Parquet's path, which has names of its own inside a list or a map.
        column: the path in the table's schema of the column that it belongs to: a scalar, a list or a map.
        kind: the type of its values.
        is_element: True inside a list or a map.
    """

    path: str
    column: tuple[str, ...]
    kind: pa.DataType
    is_element: bool

    @property
    def is_dense(self) -> bool:
        """True if neighbouring values are usually close to each other, so that their differences are small."""
        return bool(pa.types.is_timestamp(self.kind) or pa.types.is_int64(self.kind))


def _indexed(leaves: Sequence[_Leaf]) -> frozenset[tuple[str, ...]]:
    """Return the columns that have statistics: Delta counts each leaf of a struct, and a list or a map once."""
    return frozenset(list(dict.fromkeys(leaf.column for leaf in leaves))[:INDEXED_COLUMNS])


def _leaves(schema: pa.Schema) -> list[_Leaf]:
    """Return the leaves of a schema in Parquet's order."""
    return [leaf for field in schema for leaf in _leaves_of(_Leaf(field.name, (field.name,), field.type, False))]


def _leaves_of(node: _Leaf) -> Iterator[_Leaf]:
    kind = node.kind
    if pa.types.is_struct(kind):
        for field in kind:
            column = node.column if node.is_element else (*node.column, field.name)
            yield from _leaves_of(_Leaf(f"{node.path}.{field.name}", column, field.type, node.is_element))
    elif pa.types.is_list(kind):
        yield from _leaves_of(_Leaf(f"{node.path}.list.element", node.column, kind.value_type, True))
    elif pa.types.is_map(kind):
        yield from _leaves_of(_Leaf(f"{node.path}.key_value.key", node.column, kind.key_type, True))
        yield from _leaves_of(_Leaf(f"{node.path}.key_value.value", node.column, kind.item_type, True))
    else:
        yield node


def statistics(rows: pa.Table, metadata: pq.FileMetaData) -> str:
    """Return the row count, and the null counts and bounds of the first `INDEXED_COLUMNS` leaves, as Delta's JSON.

    The number is limited because log entries, manifests and checkpoints contain the statistics of each file: those of a
    thousand columns took 120 KB. Lists and maps have a null count only.
    Source: Delta Transaction Log Protocol, heading "Per-file Statistics".

    Args:
        rows: the file's columns, in Delta types.
        metadata: the footer of the file that was written from `rows`.
    """
    result: dict[str, Any] = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    leaves = _leaves(rows.schema)
    indexed = _indexed(leaves)
    for number, leaf in enumerate(leaves):
        if leaf.column in indexed and not leaf.is_element:
            chunks = [metadata.row_group(group).column(number).statistics for group in range(metadata.num_row_groups)]
            _add_bounds(result, rows, leaf, chunks)
    for field in rows.schema:
        if (field.name,) in indexed and (pa.types.is_list(field.type) or pa.types.is_map(field.type)):
            result["nullCount"][field.name] = rows.column(field.name).null_count
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _add_bounds(result: dict[str, Any], rows: pa.Table, leaf: _Leaf, chunks: list[Any]) -> None:
    if any(chunk is None for chunk in chunks):
        return
    _put(result["nullCount"], leaf.column, sum(chunk.null_count for chunk in chunks))
    # Parquet has no bounds for values over 4 KiB. The bounds of the other row groups may not include these values.
    bounded = [chunk for chunk in chunks if chunk.num_values]
    if not bounded or not all(chunk.has_min_max for chunk in bounded) or _has_nan(rows, leaf):
        return
    least, greatest = _bound_of(bounded, leaf.kind)
    if least is not None and greatest is not None:
        _put(result["minValues"], leaf.column, least)
        _put(result["maxValues"], leaf.column, greatest)


def _has_nan(rows: pa.Table, leaf: _Leaf) -> bool:
    """Return True if a leaf has NaN, which Parquet's bounds omit and Spark treats as the greatest number."""
    if not pa.types.is_floating(leaf.kind):
        return False
    top, *fields = leaf.column
    values = pc.struct_field(rows.column(top), fields) if fields else rows.column(top)
    return bool(pc.any(pc.is_nan(values)).as_py())


def _put(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _bound_of(chunks: list[Any], leaf: pa.DataType) -> tuple[object, object]:
    """Return the least and greatest value over row groups as JSON values, None if JSON can't express them."""
    if pa.types.is_timestamp(leaf):
        return _timestamp(min(chunk.min_raw for chunk in chunks)), _timestamp(max(chunk.max_raw for chunk in chunks))
    if pa.types.is_binary(leaf) or pa.types.is_decimal(leaf):
        return None, None
    if pa.types.is_date(leaf):
        return _date(min(chunk.min_raw for chunk in chunks)), _date(max(chunk.max_raw for chunk in chunks))
    least, greatest = min(chunk.min for chunk in chunks), max(chunk.max for chunk in chunks)
    if pa.types.is_string(leaf):
        return least[:_STRING_PREFIX], _upper_bound(greatest)
    if pa.types.is_floating(leaf) and not (abs(least) < float("inf") and abs(greatest) < float("inf")):
        return None, None
    return least, greatest


def _upper_bound(greatest: str) -> str:
    """Return an upper bound of a string: its first characters, then the highest character if it was shortened."""
    # No character is greater than the highest one, so such a text is not shortened.
    if len(greatest) <= _STRING_PREFIX or greatest[_STRING_PREFIX] == _HIGHEST_CHARACTER:
        return greatest
    return greatest[:_STRING_PREFIX] + _HIGHEST_CHARACTER


def _timestamp(microseconds: int) -> str | None:
    """Return a time as ISO 8601, or None outside the years of a datetime."""
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _date(days: int) -> str | None:
    """Return a day as ISO 8601, or None outside the years of a datetime."""
    try:
        return (_EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return None
