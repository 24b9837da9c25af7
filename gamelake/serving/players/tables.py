"""The tables of players and segments, and the columns that a segment's condition can use."""

from collections.abc import Mapping

import pyarrow as pa

from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.delta.declared_table import DeclaredTable

_TEXT, _COUNT, _MONEY = pa.string(), pa.int64(), pa.decimal128(18, 6)

SEGMENTS = DeclaredTable(
    "segments",
    "The current members of each segment in contracts/segments.yaml, by game, as portable roaring bitmaps.",
    ("game_name", "segment"),
    {
        "game_name": (_TEXT, "the title, as the game spells it"),
        "segment": (_TEXT, "the segment's name in contracts/segments.yaml"),
        "players": (_COUNT, "number of members"),
        "members": (pa.binary(), "the members' numbers (gold.kpi_players), as a portable roaring bitmap"),
        "computed_at": (MICROSECONDS_UTC, "when the game's members last changed"),
    },
    partition_by=("game_name",),
)

# The type and the meaning of each column of a player.
PLAYER_COLUMNS: Mapping[str, tuple[pa.DataType, str]] = {
    "country": (_TEXT, "the country of the last day with one, ISO 3166-1 alpha-2"),
    "platform": (_TEXT, "the platform of the last day with one"),
    "app_version": (_TEXT, "the game's version of the last day with one"),
    "first_version": (_TEXT, "the game's version of the first day with one"),
    "days_since_first_seen": (_COUNT, "days from the first day with events to today"),
    "days_since_last_seen": (_COUNT, "days from the last day with events to today; 0 if today has events"),
    "days_since_last_purchase": (_COUNT, "days from the last day with purchases to today; null without one"),
    "payer_state": (_TEXT, "none, first_time (one purchase), repeat, or lapsed (no purchase in 30 days)"),
    "events": (_COUNT, "events since the first day"),
    "sessions": (_COUNT, "sessions begun since the first day"),
    "purchases": (_COUNT, "purchases since the first day"),
    "bookings": (_MONEY, "bookings since the first day, in US dollars"),
    "events_7d": (_COUNT, "events of the last 7 days, today included"),
    "sessions_7d": (_COUNT, "sessions begun in the last 7 days"),
    "purchases_30d": (_COUNT, "purchases of the last 30 days"),
    "bookings_30d": (_MONEY, "bookings of the last 30 days, in US dollars"),
}
