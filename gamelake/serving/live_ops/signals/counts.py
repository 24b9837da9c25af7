"""The counts of events in one minute of one version of a game, as values and as rows."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COUNTS_SCHEMA = pa.schema(
    [
        pa.field("minute", pa.int64()),
        pa.field("game", pa.string()),
        pa.field("app_version", pa.string()),
        pa.field("events", pa.int64()),
        pa.field("errors", pa.int64()),
        pa.field("purchases", pa.int64()),
        pa.field("bookings_micros", pa.int64()),
    ]
)
MOST_VERSIONS = 50
OTHER_VERSIONS = "(others)"
_KEYS = ["minute", "game", "app_version"]
_SUMS = ["events", "errors", "purchases", "bookings_micros"]


class Count(NamedTuple):
    """The counts of one minute of one version of a game.

    Attributes:
        minute: minutes since 1970.
        game: the game's name.
        app_version: the version; "(others)" for rare ones.
        events: the number of events.
        errors: the number of errors among them.
        purchases: the number of purchases among them.
        bookings_micros: the total price of the purchases in millionths of a US dollar.
    """

    minute: int
    game: str
    app_version: str
    events: int
    errors: int
    purchases: int
    bookings_micros: int


class Hour(NamedTuple):
    """The counts of one hour of a game.

    Attributes:
        hour: hours since 1970.
        game: the game's name.
        events: the number of events.
        purchases: the number of purchases among them.
        bookings_micros: the total price of the purchases in millionths of a US dollar.
    """

    hour: int
    game: str
    events: int
    purchases: int
    bookings_micros: int


def summed(parts: Iterable[pa.Table]) -> pa.Table:
    """Sum tables of counts.

    Args:
        parts: tables with the columns of `COUNTS_SCHEMA`, in any order.

    Returns:
        Columns of `COUNTS_SCHEMA`, one row for each minute, game and version, unordered.
    """
    whole = pa.concat_tables([COUNTS_SCHEMA.empty_table(), *parts])
    grouped = whole.group_by(_KEYS, use_threads=False).aggregate([(name, "sum") for name in _SUMS])
    return grouped.rename_columns([*_KEYS, *_SUMS]).select(COUNTS_SCHEMA.names).cast(COUNTS_SCHEMA)


def as_counts(rows: pa.Table) -> list[Count]:
    """Convert rows (columns of `COUNTS_SCHEMA`) to values, in order."""
    return [Count(*values) for values in zip(*(rows[name].to_pylist() for name in COUNTS_SCHEMA.names), strict=True)]


def limited(rows: pa.Table) -> pa.Table:
    """Limit the versions of each game to the 50 with the most events; the others become '(others)'.

    Versions are strings that devices send, so their number has no bound.

    Args:
        rows: columns of `COUNTS_SCHEMA`, one row for each minute, game and version.

    Returns:
        The same columns, summed.
    """
    totals = rows.group_by(["game", "app_version"], use_threads=False).aggregate([("events", "sum")])
    if len(totals) <= MOST_VERSIONS:
        return rows
    totals = totals.sort_by([("game", "ascending"), ("events_sum", "descending"), ("app_version", "ascending")])
    games = totals["game"].combine_chunks().dictionary_encode().indices.to_numpy()
    place = np.arange(len(games)) - np.searchsorted(games, games)
    kept = totals.filter(pa.array(place < MOST_VERSIONS)).select(["game", "app_version"])
    kept = kept.append_column("kept", pa.array(np.ones(len(kept), np.bool_)))
    marked = rows.join(kept, ["game", "app_version"], use_threads=False)
    version = pc.if_else(pc.fill_null(marked["kept"], False), marked["app_version"], OTHER_VERSIONS)
    renamed = marked.set_column(marked.schema.get_field_index("app_version"), "app_version", version)
    return summed([renamed.select(COUNTS_SCHEMA.names)])
