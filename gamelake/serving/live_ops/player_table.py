"""The table of players' states: rows as analysts read them, and the base that the stream's own state starts from."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.layers.identity import Identities
from gamelake.model.naming import game_table
from gamelake.serving.live_ops.plan import BUCKETS, Base
from gamelake.serving.live_ops.players import MOMENTS, STATE_SCHEMA
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import MICROSECONDS_UTC, delta_field
from gamelake.storage.comments import CommentsOf, no_comments
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.delta_log import commit_info_of, live_files, preceding_entries
from gamelake.storage.manifests import TableFiles
from gamelake.storage.rewrites import Replacement
from gamelake.storage.store import Store
from gamelake.storage.tables import delta_schema_json, open_table

PLAYER_STATE = "gold/live_ops_player_state"
_BUCKET = "bucket"
_BASE = "gamelake.live_ops.base"
_INTERNAL = ("key", "erased")
_MOMENTS = {name for name in STATE_SCHEMA.names if name in MOMENTS or name.endswith("_at")}

ROW_SCHEMA = pa.schema(
    [
        pa.field(field.name, MICROSECONDS_UTC if field.name in _MOMENTS else field.type)
        for field in STATE_SCHEMA
        if field.name not in _INTERNAL
    ]
)


def as_rows(states: pa.Table) -> pa.Table:
    """States as rows of the table.

    Args:
        states: columns of `STATE_SCHEMA`; times are int64 microseconds since 1970, 0 for never.

    Returns:
        Columns of `ROW_SCHEMA` in the same order of rows; times are timestamps, null for never.
    """
    columns = []
    for field in ROW_SCHEMA:
        column = states[field.name].combine_chunks()
        if field.name in _MOMENTS:
            never = pc.less_equal(column, 0)
            column = pc.if_else(never, pa.scalar(None, pa.int64()), column).cast(pa.timestamp("us")).cast(field.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=ROW_SCHEMA)


def as_states(rows: pa.Table, identities: Identities) -> pa.Table:
    """Rows of the table (columns of `ROW_SCHEMA`) as states (columns of `STATE_SCHEMA`), in their order."""
    games = rows["game"].combine_chunks().dictionary_encode()
    tables = [game_table(game) for game in games.dictionary.to_pylist()]
    codes = games.indices.to_numpy().astype(np.int64)
    keys, _ = (
        identities.of(tables, codes, rows["gamer_id"].combine_chunks()) if len(rows) else (np.zeros(0, "u8"), None)
    )
    columns: dict[str, Any] = {"key": pa.array(keys), "erased": pa.array(np.zeros(len(rows), np.bool_))}
    for field in ROW_SCHEMA:
        column = rows[field.name]
        columns[field.name] = pc.fill_null(column.cast(pa.int64()), 0) if field.name in _MOMENTS else column
    return pa.table({name: columns[name] for name in STATE_SCHEMA.names}, schema=STATE_SCHEMA)


def write_bucket(store: Store, bucket: int, states: pa.Table) -> DataFile:
    """Write one bucket's states (columns of `STATE_SCHEMA`), sorted by player, as a file; nothing is committed."""
    rows = as_rows(states.sort_by([("game", "ascending"), ("gamer_id", "ascending")]))
    content, statistics = encode_parquet(rows, frozenset({"gamer_id"}))
    path = new_file_name(f"{_BUCKET}={bucket}")
    store.put(f"{PLAYER_STATE}/{path}", content.to_pybytes())
    partition: dict[str, str | None] = {_BUCKET: str(bucket)}
    return DataFile(path=path, size=content.size, rows=rows.num_rows, partition=partition, statistics=statistics)


class PlayerStateTable:
    """The table as the driver sees it."""

    def __init__(self, store: Store, stream: str, comments: CommentsOf = no_comments) -> None:
        self._store = store
        self._stream = stream
        self._comments = comments

    def base(self) -> tuple[Base, list[tuple[int, str]]]:
        """Up to which batch the table has the state, and its files by bucket; nothing if it is not this stream's."""
        handle = self._open()
        if handle is None:
            return Base(stream=self._stream), []
        base = self._noted(handle.version())
        if base is None or base.stream != self._stream:
            return Base(stream=self._stream), []
        return base, [(int(file.partition[_BUCKET] or 0), file.relative_path) for file in live_files(handle)]

    def _open(self) -> DeltaTable | None:
        try:
            return open_table(self._store.location, PLAYER_STATE)
        except TableNotFoundError:
            return None

    def _noted(self, version: int) -> Base | None:
        """What the newest commit of ours says; others, which take rows out, say nothing."""
        for _, actions in preceding_entries(self._store, PLAYER_STATE, version):
            info = commit_info_of(actions)
            if _BASE in info:
                return msgspec.json.decode(info[_BASE], type=Base)
        return None

    def replace(self, files: Sequence[DataFile], base: Base) -> bool:
        """Put files in the place of all others; returns False if another writer was faster."""
        handle = self._open()
        fields = [*(delta_field(field) for field in ROW_SCHEMA), pa.field(_BUCKET, pa.int32())]
        entry = TableFiles(
            table=PLAYER_STATE,
            partition_by=(_BUCKET,),
            schema=delta_schema_json(pa.schema(fields)),
            files=tuple(file for file in files if file.rows),
        )
        version = 0 if handle is None else handle.version() + 1
        replacement = Replacement(
            entry=entry,
            removed=[] if handle is None else live_files(handle),
            transaction=BatchTransaction(f"live-ops-{self._stream}", base.batch_id),
            table_id="" if handle is None else str(handle.metadata().id),
            properties={"gamelake.buckets": str(BUCKETS)} if handle is None else None,
            notes={_BASE: msgspec.json.encode(base).decode()},
            comments=self._comments(PLAYER_STATE),
        )
        return replacement.commit(self._store, version)
