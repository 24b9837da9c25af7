"""The table of players' states: rows for analysts, and the base from which the stream resumes its own state."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import MICROSECONDS_UTC, delta_field
from gamelake.delta.comments import CommentsOf, no_comments
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.log.codec import commit_info_of, live_files, preceding_entries
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.layers.identity import Identities
from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.serving.live_ops.plan import BUCKETS, Base
from gamelake.serving.live_ops.states.players import MOMENTS, STATE_SCHEMA

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
    """Convert states to rows of the table.

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
    """Convert rows of the table to states.

    Args:
        rows: columns of `ROW_SCHEMA`; times are timestamps, null for never.
        identities: computes the players' keys with the stream's seed.

    Returns:
        Columns of `STATE_SCHEMA` in the same order of rows; times are int64 microseconds since 1970, 0 for never.
    """
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
    return write_rows(store, PLAYER_STATE, rows, {_BUCKET: str(bucket)}, frozenset({"gamer_id"}))


class PlayerStateTable:
    """The table of players' states, for the driver.

    Args:
        store: the lakehouse.
        stream: the state folder of the stream.
        comments: returns the descriptions of the table and its columns.
    """

    def __init__(self, store: Store, stream: str, comments: CommentsOf = no_comments) -> None:
        self._store = store
        self._stream = stream
        self._comments = comments

    def base(self) -> tuple[Base, list[tuple[int, str]]]:
        """Read the state in the table, and its files, each with its bucket; both empty if it is another stream's."""
        handle = self._table.open()
        if handle is None:
            return Base(stream=self._stream), []
        base = self._noted(handle.version())
        if base is None or base.stream != self._stream:
            return Base(stream=self._stream), []
        return base, [(int(file.partition[_BUCKET] or 0), file.relative_path) for file in live_files(handle)]

    @property
    def _table(self) -> OwnedTable:
        fields = [*(delta_field(field) for field in ROW_SCHEMA), pa.field(_BUCKET, pa.int32())]
        return OwnedTable(
            store=self._store,
            path=PLAYER_STATE,
            schema=pa.schema(fields),
            partition_by=(_BUCKET,),
            properties={"gamelake.buckets": str(BUCKETS)},
            comments=self._comments(PLAYER_STATE),
        )

    def _noted(self, version: int) -> Base | None:
        """Return the base in the newest commit of the live-ops job; other writers only remove rows, and note none."""
        for _, actions in preceding_entries(self._store, PLAYER_STATE, version):
            info = commit_info_of(actions)
            if _BASE in info:
                return msgspec.json.decode(info[_BASE], type=Base)
        return None

    def replace(self, files: Sequence[DataFile], base: Base) -> bool:
        """Replace all files in one commit; return False if another writer committed first."""
        handle = self._table.open()
        change = Replacement(
            files=[file for file in files if file.rows],
            removed=self._table.files(handle, lambda _: True),
            transaction=BatchTransaction(f"live-ops-{self._stream}", base.batch_id),
            notes={_BASE: msgspec.json.encode(base).decode()},
        )
        return self._table.commit(handle, change)
