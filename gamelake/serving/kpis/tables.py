"""The KPI tables: their columns, and the meaning of each."""

import hashlib

import pyarrow as pa

from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.delta.declared_table import DeclaredTable

# The lengths of the two longer activity windows, in days, including the day itself.
WEEK, MONTH = 7, 30
# The last day of a cohort; its first day is 0.
LAST_COHORT_DAY = 365
MONEY = pa.decimal128(38, 6)
# What cohorts are split by, one at a time, and the days of a cohort that a split has.
DIMENSIONS = ("country", "platform", "app_version", "source")
SPLIT_DAYS = (*range(31), 60, 90, 180, LAST_COHORT_DAY)

_DAY, _COUNT, _TEXT, _RATIO, _SET = pa.date32(), pa.int64(), pa.string(), pa.float64(), pa.binary()

_EVENT_DATE = (_DAY, "the day in the game's time zone; a condition on it decides which files are read")
_GAME_NAME = (_TEXT, "the title, as the game spells it")
_PROVISIONAL_UNTIL = (
    MICROSECONDS_UTC,
    "180 minutes after the end of the day; expect late events until then; later ones still count",
)

PLAYERS = DeclaredTable(
    "kpi_players",
    "The number of each player of each game, which stands for the player in sets of players.",
    ("game_name", "number"),
    {
        "game_name": _GAME_NAME,
        "gamer_id": (_TEXT, "who, by pseudonym; the same for one player of one game"),
        "number": (_COUNT, "the player's number in the game; players are numbered from 0 as they are first seen"),
    },
)

PLAYER_SETS = DeclaredTable(
    "kpi_player_sets",
    "Who played on which day: sets of players' numbers (gold.kpi_players) as portable roaring bitmaps.",
    ("event_date", "game_name"),
    {
        "event_date": _EVENT_DATE,
        "game_name": _GAME_NAME,
        "active": (_SET, "players of the day"),
        "payers": (_SET, "players of the day who bought something"),
        "new": (_SET, "players of the day who were not active on an earlier day"),
        "ever": (_SET, "players who were active on the day or on an earlier one"),
        "new_payers": (_SET, "payers of the day who bought nothing on an earlier day"),
        "bookings": (
            pa.list_(pa.field("element", MONEY)),
            "what each payer of the day paid, in US dollars, in the order of the payers' numbers",
        ),
        "new_by": (
            pa.list_(pa.field("element", pa.struct([("dimension", _TEXT), ("value", _TEXT), ("players", _SET)]))),
            "the players in new, by the value of each dimension of gold.kpi_cohorts_by",
        ),
    },
    partition_by=("event_date", "game_name"),
    fields={
        "new_by.dimension": "country, platform, app_version or source",
        "new_by.value": "the dimension's value in the player's first event with one; unknown; other",
        "new_by.players": "the players, as in new",
    },
)

DAILY = DeclaredTable(
    "kpi_daily",
    "Each day of each game: events, bookings, players, payers and sessions.",
    ("event_date", "game_name"),
    {
        "event_date": _EVENT_DATE,
        "game_name": _GAME_NAME,
        "events": (_COUNT, "number of events"),
        "purchases": (_COUNT, "purchases with a price"),
        "bookings": (MONEY, "total price of the purchases, in US dollars"),
        "active_players": (_COUNT, "different players of the day"),
        "payers": (_COUNT, "different players of the day who bought something"),
        "conversion": (_RATIO, "payers among the day's players"),
        "arpdau": (_RATIO, "bookings for each player of the day, in US dollars"),
        "arppu": (_RATIO, "bookings for each payer of the day, in US dollars"),
        "sessions": (_COUNT, "different sessions of the day's players"),
        "peak_concurrent_players": (_COUNT, "most players in sessions at once, in a minute; 0 without sessions"),
        "session_seconds_p50": (_RATIO, "the length that half of the day's sessions do not exceed, in seconds"),
        "session_seconds_p90": (_RATIO, "the length that 90 % of the day's sessions do not exceed, in seconds"),
        "session_seconds_p99": (_RATIO, "the length that 99 % of the day's sessions do not exceed, in seconds"),
        "begins": (MICROSECONDS_UTC, "the first moment of the day"),
        "ends": (MICROSECONDS_UTC, "the first moment after the day; 23 or 25 hours after begins if clocks are changed"),
        "time_zone": (_TEXT, "the game's time zone (time_zone in contracts/games.yaml)"),
        "provisional_until": _PROVISIONAL_UNTIL,
    },
)

ACTIVE_PLAYERS = DeclaredTable(
    "kpi_active_players",
    "Different players of each day, and of 7 and 30 days that end with it.",
    ("event_date", "game_name"),
    {
        "event_date": _EVENT_DATE,
        "game_name": _GAME_NAME,
        "dau": (_COUNT, "different players of the day"),
        "wau": (_COUNT, "different players of the 7 days that end with this one"),
        "mau": (_COUNT, "different players of the 30 days that end with this one"),
        "stickiness": (_RATIO, "the day's players for each player of the 30 days"),
        "provisional_until": _PROVISIONAL_UNTIL,
    },
)


COHORTS = DeclaredTable(
    "kpi_cohorts",
    "The players of each first day, and what they did on each day since, from day 0 to day 365.",
    # The day is first, so that a change of today rewrites no row of an earlier day.
    ("event_date", "game_name", "cohort_date"),
    {
        "event_date": (_DAY, f"{_EVENT_DATE[1]}. Each day up to today has a row, also without players of the cohort"),
        "game_name": _GAME_NAME,
        "cohort_date": (_DAY, "the day that these players were first seen on"),
        "day": (_COUNT, "days from cohort_date to event_date, 0 to 365"),
        "new_players": (_COUNT, "players of the cohort: those who were first seen on cohort_date"),
        "returned_players": (_COUNT, "how many of them played on event_date; 0 if none did"),
        "returned_retention": (_RATIO, "share of them who played on event_date"),
        "bookings": (MONEY, "what they paid on event_date, in US dollars; 0 if nothing"),
        "cumulative_bookings": (MONEY, "what they paid from cohort_date to event_date, in US dollars"),
        "ltv": (_RATIO, "lifetime value: cumulative_bookings for each player of the cohort, in US dollars"),
        "new_payers": (_COUNT, "how many of them bought something for the first time on event_date"),
        "payers": (_COUNT, "how many of them bought something from cohort_date to event_date"),
        "conversion": (_RATIO, "share of them who bought something from cohort_date to event_date"),
        "provisional_until": _PROVISIONAL_UNTIL,
    },
    partition_by=("game_name",),
)

COHORTS_BY = DeclaredTable(
    "kpi_cohorts_by",
    "The players of each first day by one dimension at a time, on days 0 to 30, 60, 90, 180 and 365.",
    ("event_date", "game_name", "cohort_date", "dimension", "value"),
    {
        "event_date": (_DAY, f"{_EVENT_DATE[1]}. Only days up to today have rows"),
        "game_name": _GAME_NAME,
        "cohort_date": (_DAY, "the day that these players were first seen on"),
        "dimension": (_TEXT, "country, platform, app_version or source; add up rows of one dimension only"),
        "value": (_TEXT, "the dimension's value in the player's first event with one on cohort_date; unknown; other"),
        "day": (_COUNT, "days from cohort_date to event_date: 0 to 30, 60, 90, 180 or 365"),
        "new_players": (_COUNT, "players of the cohort with this value"),
        "returned_players": (_COUNT, "how many of them played on event_date; 0 if none did"),
        "returned_retention": (_RATIO, "share of them who played on event_date"),
        "bookings": (MONEY, "what they paid on event_date, in US dollars; 0 if nothing"),
        "cumulative_bookings": (MONEY, "what they paid from cohort_date to event_date, in US dollars"),
        "ltv": (_RATIO, "lifetime value: cumulative_bookings for each of these players, in US dollars"),
        "new_payers": (_COUNT, "how many of them bought something for the first time on event_date"),
        "payers": (_COUNT, "how many of them bought something from cohort_date to event_date"),
        "conversion": (_RATIO, "share of them who bought something from cohort_date to event_date"),
        "provisional_until": _PROVISIONAL_UNTIL,
    },
    partition_by=("game_name",),
)

# In the order of their commits. The sets are last: their commit has the position up to which all tables were computed.
ALL = (PLAYERS, DAILY, ACTIVE_PLAYERS, COHORTS, COHORTS_BY, PLAYER_SETS)

# Increase this if all rows must be computed again for another reason than new columns or SQL.
_REVISION = 1


def fingerprint(*sql: str) -> str:
    """Return a hash of everything that the tables' rows depend on; `sql` is the statements that compute them."""
    text = repr([_REVISION, sql, [(table.name, table.schema.to_string()) for table in ALL]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
