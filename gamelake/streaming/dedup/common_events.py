"""Compares the events of data files that are decided: two streams must not both commit an event."""

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.delta.table_files import TableFiles
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, Events, KnownEvents
from gamelake.model.arrays import Ints
from gamelake.model.naming import SILVER_EVENTS, game_of
from gamelake.objects.store import Store
from gamelake.streaming.dedup.candidates import EVENT_ID

_IDENTITY = ["game_name", "event_id"]


def have_common_events(store: Store, some: Sequence[TableFiles], others: Sequence[TableFiles]) -> bool:
    """Return True if both lists of files of silver/events have an event with the same game and id.

    Events without an id don't count.
    """
    # No sender knows this seed: events that are made to collide would stop both streams.
    identities = Identities(uuid.uuid4().hex)
    known = KnownEvents(ANY_TIME)
    known.add(_identified(store, some, identities))
    return bool(known.have(_identified(store, others, identities)).any())


def _identified(store: Store, tables: Sequence[TableFiles], identities: Identities) -> Events:
    found = [
        _read(store, f"{SILVER_EVENTS}/{file.path}")
        for entry in tables
        if entry.table == SILVER_EVENTS
        for file in entry.files
    ]
    rows = pa.concat_tables(found) if found else pa.table({name: pa.array([], pa.string()) for name in _IDENTITY})
    return identified(SILVER_EVENTS, rows, identities)[0]


def identified(table: str, rows: pa.Table, identities: Identities) -> tuple[Events, Ints]:
    """Compute the identities of the events of a table; an event without an id has none.

    Args:
        table: a table of a game gives its events that game; in any other table the column `game_name` has it.
        rows: columns `event_id` (string) and, unless the table is a game's, `game_name` (string).
        identities: the hash.

    Returns:
        The identities, in the order of the rows, and the positions (int64) of their rows.
    """
    if EVENT_ID not in rows.column_names:
        rows = rows.append_column(EVENT_ID, pa.nulls(len(rows), pa.string()))
    positions = np.flatnonzero(pc.fill_null(pc.binary_length(rows[EVENT_ID]), 0).to_numpy())
    rows = rows.take(pa.array(positions)).combine_chunks()
    if not len(rows):
        nothing = np.zeros(0, np.uint64)
        return Events(nothing, nothing), positions
    games, codes = [table], np.zeros(len(rows), np.int64)
    if game_of(table) is None:
        titles = pc.fill_null(rows["game_name"], "").combine_chunks().dictionary_encode()
        games, codes = titles.dictionary.to_pylist(), titles.indices.to_numpy().astype(np.int64)
    high, rest = identities.of(games, codes, rows[EVENT_ID].combine_chunks())
    return Events.of(high, rest, np.full(len(rows), ANY_TIME, np.int64)), positions


def _read(store: Store, path: str) -> pa.Table:
    content = store.require(path, "a batch has just written it")
    return pq.read_table(pa.BufferReader(content), columns=_IDENTITY)
