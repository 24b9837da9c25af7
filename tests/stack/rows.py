"""Tables of one row per commit, which show whose commit was lost."""

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.objects.store import Store

SCHEMA = pa.schema([pa.field("writer", pa.string()), pa.field("number", pa.int64())])
_NONE: Mapping[str, pa.Array] = MappingProxyType({})


def write_row(store: Store, table: str, writer: str, number: int, more: Mapping[str, pa.Array] = _NONE) -> DataFile:
    """Write one row into a file that no commit names yet."""
    rows = pa.table({"writer": [writer], "number": [number], **more})
    return write_rows(store, table, rows, {})


def entry_of(table: str, file: DataFile, more: Mapping[str, pa.Array] = _NONE) -> TableFiles:
    """What a batch says of such a file."""
    columns = pa.schema([*SCHEMA, *(pa.field(name, values.type) for name, values in more.items())])
    return TableFiles(table=table, partition_by=(), schema=delta_schema_json(columns), files=(file,))


def commits(store: Store, table: str) -> list[int]:
    """The versions that a table's log has, in order."""
    names = [path.rsplit("/", 1)[-1] for path in store.paths(f"{table}/_delta_log")]
    return [int(name.removesuffix(".json")) for name in names if name.endswith(".json") and name[0].isdigit()]
