"""Data files of Delta tables: Parquet encoding, and the statistics that a commit needs."""

import json
import re
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.storage.store import Store

# The leaf columns at the beginning of a file that have statistics: the limit that the platform's tables declare.
INDEXED_COLUMNS = 32
_STRING_PREFIX = 32  # characters of a bound, as Delta's own writers keep
# Characters that Hive and Spark don't write into a partition's folder as they are, and NUL, which no path can have.
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_NAME = 255  # bytes, of most file systems
_HIGHEST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROW_GROUP_ROWS = 131_072


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of a table.

    Attributes:
        path: under the table's folder, as the object store has it; the log has it percent-encoded.
        size: in bytes.
        partition: partition values as strings, by column.
        statistics: Delta's JSON; see `statistics`.
    """

    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    statistics: str


def new_file_name(folder: str) -> str:
    """A path in a folder, unique also among attempts at the same batch."""
    name = f"part-{uuid.uuid4()}.zstd.parquet"
    return f"{folder}/{name}" if folder else name


def partition_folder(partition: Mapping[str, str | None]) -> str:
    """The folder of a partition's files under the table's folder: `column=value/column=value`, empty without columns.

    The protocol has readers take partition values from the log; some, such as Polars, take them from this path. In the
    path, a value that is too long for a name of a file system is null: if the column were missing there, Polars could
    not read the table at all.
    Source: Spark's `ExternalCatalogUtils.escapePathName` and Hive's default partition name.

    Args:
        partition: the partition values as strings, by column, in the table's order.
    """
    steps: list[str] = []
    for column, value in partition.items():
        step = f"{_escaped(column)}={_escaped(value) if value else _NO_VALUE}"
        steps.append(step if len(step.encode()) <= _LONGEST_NAME else f"{_escaped(column)}={_NO_VALUE}")
    return "/".join(steps)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def write_rows(
    store: Store, table: str, rows: pa.Table, partition: dict[str, str | None], unique: Collection[str] = frozenset()
) -> DataFile:
    """Write rows as one file of a table; nothing is committed.

    Args:
        store: the lakehouse.
        table: its path.
        rows: the table's columns without its partition columns, in Delta types (`gamelake.storage.columns`).
        partition: the partition values as strings, by column, in the table's order.
        unique: see `encode_parquet`.
    """
    content, statistics = encode_parquet(rows.combine_chunks(), unique)
    path = new_file_name(partition_folder(partition))
    store.put(f"{table}/{path}", content.to_pybytes())
    return DataFile(path=path, size=content.size, rows=rows.num_rows, partition=partition, statistics=statistics)


def encode_parquet(rows: pa.Table, unique: Collection[str]) -> tuple[pa.Buffer, str]:
    """Encode rows as Parquet and collect their statistics in one go.

    Args:
        rows: the file's columns, without partition columns, in Delta types (`gamelake.storage.columns`).
        unique: top-level columns whose values hardly repeat; they get no dictionary, which would save nothing.

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
        use_dictionary=[path for path, leaf in leaves.items() if path not in unique and not _is_dense(leaf)],
        column_encoding={path: "DELTA_BINARY_PACKED" for path, leaf in leaves.items() if _is_dense(leaf)} or None,
        metadata_collector=collected,
    )
    return sink.getvalue(), statistics(rows, collected[0])


def _is_dense(leaf: pa.DataType) -> bool:
    """Whether neighbouring values are close to each other, so that their differences are short."""
    return bool(pa.types.is_timestamp(leaf) or pa.types.is_int64(leaf))


def _indexed_leaves(schema: pa.Schema) -> set[str]:
    """The paths of the leaves that have statistics: Delta counts a struct by its leaves, a list or a map once."""
    indexed, left = set[str](), INDEXED_COLUMNS
    for field in schema:
        leaves: dict[str, pa.DataType] = {}
        _add_leaves(field.name, field.type, leaves)
        counted = list(dict.fromkeys(path.partition(".list.")[0].partition(".key_value.")[0] for path in leaves))
        indexed.update(counted[:left])
        left -= len(counted)
        if left <= 0:
            break
    return indexed


def _leaves(schema: pa.Schema) -> dict[str, pa.DataType]:
    leaves: dict[str, pa.DataType] = {}
    for field in schema:
        _add_leaves(field.name, field.type, leaves)
    return leaves


def _add_leaves(path: str, arrow: pa.DataType, leaves: dict[str, pa.DataType]) -> None:
    if pa.types.is_struct(arrow):
        for field in arrow:
            _add_leaves(f"{path}.{field.name}", field.type, leaves)
    elif pa.types.is_list(arrow):
        _add_leaves(f"{path}.list.element", arrow.value_type, leaves)
    elif pa.types.is_map(arrow):
        _add_leaves(f"{path}.key_value.key", arrow.key_type, leaves)
        _add_leaves(f"{path}.key_value.value", arrow.item_type, leaves)
    else:
        leaves[path] = arrow


def statistics(rows: pa.Table, metadata: pq.FileMetaData) -> str:
    """Row count, and null count, least and greatest value of the first `INDEXED_COLUMNS` leaves, as Delta's JSON.

    Each file's statistics are in log entries, manifests and checkpoints: those of a thousand columns took 120 KB.
    Source: Delta Transaction Log Protocol, heading "Per-file Statistics". Lists and maps have a null count only.

    Args:
        rows: the file's columns.
        metadata: the footer of the file that was written from them.
    """
    result: dict[str, Any] = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    leaves, indexed = _leaves(rows.schema), _indexed_leaves(rows.schema)
    for column in range(metadata.num_columns):
        chunks = [metadata.row_group(group).column(column) for group in range(metadata.num_row_groups)]
        path = chunks[0].path_in_schema
        if path in indexed:
            _add_bounds(result, rows, path.split("."), leaves[path], [chunk.statistics for chunk in chunks])
    for field in rows.schema:
        if field.name in indexed and (pa.types.is_list(field.type) or pa.types.is_map(field.type)):
            result["nullCount"][field.name] = rows.column(field.name).null_count
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _add_bounds(result: dict[str, Any], rows: pa.Table, path: list[str], leaf: pa.DataType, chunks: list[Any]) -> None:
    if any(chunk is None for chunk in chunks):
        return
    _put(result["nullCount"], path, sum(chunk.null_count for chunk in chunks))
    # Parquet has no bounds for values of more than 4 KiB: bounds of the other row groups would not hold for them.
    bounded = [chunk for chunk in chunks if chunk.num_values]
    if not bounded or not all(chunk.has_min_max for chunk in bounded) or _has_nan(rows, path, leaf):
        return
    least, greatest = _bound_of(bounded, leaf)
    if least is not None and greatest is not None:
        _put(result["minValues"], path, least)
        _put(result["maxValues"], path, greatest)


def _has_nan(rows: pa.Table, path: list[str], leaf: pa.DataType) -> bool:
    """Parquet's bounds leave NaN out, which to Spark is the greatest number."""
    if not pa.types.is_floating(leaf):
        return False
    values = rows.column(path[0])
    if path[1:]:
        values = pc.struct_field(values, path[1:])
    return bool(pc.any(pc.is_nan(values)).as_py())


def _put(tree: dict[str, Any], path: list[str], value: object) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _bound_of(chunks: list[Any], leaf: pa.DataType) -> tuple[object, object]:
    """Least and greatest value over row groups as JSON values, (None, None) where JSON can't express them."""
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
    """A string that is not less than the given one: shortened, and made greater than all that begin with it."""
    # No character is greater than the highest one: such a text stays as long as it is.
    if len(greatest) <= _STRING_PREFIX or greatest[_STRING_PREFIX] == _HIGHEST_CHARACTER:
        return greatest
    return greatest[:_STRING_PREFIX] + _HIGHEST_CHARACTER


def _timestamp(microseconds: int) -> str | None:
    """ISO 8601, or None outside the years that a datetime can hold."""
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _date(days: int) -> str | None:
    """ISO 8601, or None outside the years that a datetime can hold."""
    try:
        return (_EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return None
