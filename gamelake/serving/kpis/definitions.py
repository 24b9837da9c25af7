"""The KPI tables as data: what a row stands for, which columns it has, and the SQL that makes the rows of some days.

The SQL reads what a batch of the stream brings, as it stands now and not by how much it grew (`hours`, `visits`,
`arrivals`), and each table by its name: before its own turn as it was, after it as it will be. What a batch brings can
be merged in a second time without a difference: counts are replaced, extremes and flags stay what they are. So a batch
that runs again, after whatever kill, leaves the same rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from gamelake.model.clocks import TOLERATED_SKEW
from gamelake.storage.columns import MICROSECONDS_UTC

MEANINGS: Mapping[str, str] = {
    "event_date": "the day in UTC; a condition on it decides which files are read",
    "hour": "the beginning of the hour in UTC",
    "first_date": "the first day that the player was seen on",
    "cohort_date": "the day that these players were first seen on",
    "game_name": "the title, as the game spells it",
    "platform": "on what it was played",
    "app_version": "the game's version",
    "gamer_id": "who, by pseudonym; the same for one player of one game",
    "session_id": "in which sitting",
    "first_event": "the session's first event of the day",
    "last_event": "the session's last event of the day",
    "events": "how much happened",
    "purchases": "events that are purchases",
    "bookings": "what they amount to, in US dollars",
    "arrived": "events of the hour that the tables have",
    "counted": "those of them that came before the watermark and are in the figures",
    "late": "those that came after it, and are in none",
    "halvings": "how often the sample of ids was halved; 0 where every one is counted",
    "paid": "whether the player bought something on the day",
    "active_players": "different players of the day",
    "payers": "different players of the day who bought something",
    "conversion": "payers among the day's players",
    "arpdau": "bookings for each player of the day, in US dollars",
    "arppu": "bookings for each payer of the day, in US dollars",
    "players_error": "the relative standard error of counts of players; 0 where every one is counted",
    "sessions": "different sessions of the day",
    "session_seconds_p50": "the length that half of the day's sessions do not exceed, in seconds",
    "session_seconds_p90": "the length that 90 % of the day's sessions do not exceed, in seconds",
    "session_seconds_p99": "the length that 99 % of the day's sessions do not exceed, in seconds",
    "sessions_error": "the relative standard error of counts of sessions; 0 where every one is counted",
    "dau": "different players of the day",
    "wau": "different players of the 7 days that end with this one",
    "mau": "different players of the 30 days that end with this one",
    "stickiness": "the day's players for each player of the 30 days",
    "new_players": "players who were first seen on the day",
    "day1_players": "those of them who were back a day later; null while that day has not begun",
    "day7_players": "those of them who were back 7 days later; null while that day has not begun",
    "day30_players": "those of them who were back 30 days later; null while that day has not begun",
    "day1_retention": "the part of them that was back a day later",
    "day7_retention": "the part of them that was back 7 days later",
    "day30_retention": "the part of them that was back 30 days later",
}


# Facets: what a fact is about.
HOUR, SESSION, ARRIVAL = "hour", "session", "arrival"
# Spark SQL: when the platform received an event; null where silver does not say so, as in rows of earlier versions.
# Spark keeps current_timestamp() with a batch's offsets: it is the same when the batch runs again. A clock of this
# process that is behind by minutes must not move events into the hour before.
_LATEST = f"current_timestamp() + INTERVAL {TOLERATED_SKEW // timedelta(seconds=1)} SECONDS"
ARRIVED = f"CASE WHEN ingest_time >= event_time - INTERVAL 366 DAYS THEN least(ingest_time, {_LATEST}) END"
# A device's clock may be ahead, and nothing happens after the platform has received it. Without this one such event
# would move the watermark, and all other events would be late.
OCCURRED = f"least(event_time, {ARRIVED})"

# Days, counted with the day itself, of the two longer activity windows.
WEEK, MONTH = 7, 30
RETENTION_DAYS = (1, 7, 30)

_DAY, _COUNT, _TEXT, _RATIO = pa.date32(), pa.int64(), pa.string(), pa.float64()
_MONEY = pa.decimal128(28, 6)


@dataclass(frozen=True, slots=True)
class ExactUpTo:
    """How many players of a game, and sessions of a game and day, are counted one by one; of more, a sample is."""

    players: int = 100_000
    sessions: int = 20_000


@dataclass(frozen=True, slots=True)
class KpiTable:
    """One table under gold/: partitioned by its day column, the first of its grain."""

    name: str
    grain: tuple[str, ...]
    schema: pa.Schema
    sql: str

    @property
    def path(self) -> str:
        """Where it stands in the lakehouse."""
        return f"gold/{self.name}"

    @property
    def day(self) -> str:
        """The column that it is partitioned by."""
        return self.grain[0]


def _schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    # Delta keeps the meaning of a column next to its type.
    return pa.schema([pa.field(name, kind, metadata={"comment": MEANINGS[name]}) for name, kind in columns])


def _kept(identity: str, halvings: str) -> str:
    """Whether an id is in a sample that was halved so often; in none that never was is it not."""
    return f"({halvings} = 0 OR md5_number_lower({identity}) % CAST(1 << {halvings} AS UBIGINT) = 0)"


def _error(sample: str, halvings: str) -> str:
    """The relative standard error of a count that was estimated from a sample; 0 where all were counted."""
    return f"CASE WHEN {halvings} = 0 THEN 0.0 ELSE sqrt((1 - 1.0 / (1 << {halvings})) / greatest({sample}, 1)) END"


HOURLY = KpiTable(
    "kpi_hourly",
    ("event_date", "hour", "game_name", "platform", "app_version"),
    _schema(
        ("event_date", _DAY), ("hour", MICROSECONDS_UTC), ("game_name", _TEXT), ("platform", _TEXT),
        ("app_version", _TEXT), ("events", _COUNT), ("purchases", _COUNT), ("bookings", _MONEY),
    ),
    """
    SELECT event_date, hour, game_name, platform, app_version,
      arg_max(events, fresh) AS events, arg_max(purchases, fresh) AS purchases, arg_max(bookings, fresh) AS bookings
    FROM (SELECT *, 0 AS fresh FROM kpi_hourly UNION ALL BY NAME SELECT *, 1 AS fresh FROM hours)
    GROUP BY ALL
    """,
)  # fmt: skip

LATE = KpiTable(
    "kpi_late",
    ("event_date", "hour", "game_name"),
    _schema(
        ("event_date", _DAY), ("hour", MICROSECONDS_UTC), ("game_name", _TEXT),
        ("arrived", _COUNT), ("counted", _COUNT), ("late", _COUNT),
    ),
    """
    WITH merged AS (
      SELECT event_date, hour, game_name, arg_max(arrived, fresh) AS arrived
      FROM (SELECT event_date, hour, game_name, arrived, 0 AS fresh FROM kpi_late
        UNION ALL BY NAME SELECT event_date, hour, game_name, events AS arrived, 1 AS fresh FROM arrivals)
      GROUP BY ALL),
    found AS (SELECT hour, game_name, sum(events) AS counted FROM kpi_hourly GROUP BY ALL)
    SELECT event_date, hour, game_name, arrived, coalesce(counted, 0) AS counted, arrived - coalesce(counted, 0) AS late
    FROM merged LEFT JOIN found USING (hour, game_name)
    """,
)  # fmt: skip

# Adaptive sampling by Wegman: once there are more players than may be kept, those stay whose hash ends in a zero bit
# more. Source: Flajolet, "On adaptive sampling" (Computing 43, 1990).
PLAYERS = KpiTable(
    "kpi_players",
    ("first_date", "game_name", "gamer_id"),
    _schema(("first_date", _DAY), ("game_name", _TEXT), ("gamer_id", _TEXT), ("halvings", _COUNT)),
    f"""
    WITH merged AS (
      SELECT game_name, gamer_id, least(known.first_date, seen.event_date) AS first_date
      FROM kpi_players AS known LEFT JOIN seen USING (game_name, gamer_id)
      UNION ALL BY NAME
      SELECT game_name, gamer_id, event_date AS first_date FROM seen WHERE seen.first_date IS NULL)
    SELECT first_date, game_name, gamer_id, halvings
    FROM merged JOIN player_depths USING (game_name)
    WHERE {_kept("gamer_id", "halvings")}
    """,  # noqa: S608 # of constants
)

# How often the sample of each game's players is halved, and how many it has then, once the players that a batch brings
# (`seen`) are in it.
PLAYER_DEPTHS = f"""
    WITH fresh AS (
      SELECT game_name, coalesce(halvings, 0) AS halvings, count(*) AS players
      FROM seen LEFT JOIN known_depths USING (game_name)
      WHERE first_date IS NULL AND {_kept("gamer_id", "coalesce(halvings, 0)")}
      GROUP BY ALL),
    grown AS (
      SELECT game_name, max(halvings) AS halvings, sum(players) AS players
      FROM (SELECT game_name, halvings, players FROM known_depths UNION ALL BY NAME SELECT * FROM fresh)
      GROUP BY ALL)
    SELECT game_name, CAST(halvings + greatest(0, ceil(log2(grown.players / exact.players))) AS BIGINT) AS halvings
    FROM grown CROSS JOIN exact
    """  # noqa: S608 # of constants

PLAYER_DAYS = KpiTable(
    "kpi_player_days",
    ("event_date", "game_name", "gamer_id"),
    _schema(("event_date", _DAY), ("game_name", _TEXT), ("gamer_id", _TEXT), ("paid", pa.bool_())),
    f"""
    SELECT event_date, game_name, gamer_id, bool_or(paid) AS paid
    FROM (SELECT event_date, game_name, gamer_id, paid FROM kpi_player_days
      UNION ALL BY NAME SELECT event_date, game_name, gamer_id, paid FROM visits WHERE gamer_id IS NOT NULL) AS days
    JOIN player_depths USING (game_name)
    WHERE {_kept("gamer_id", "halvings")}
    GROUP BY ALL
    """,  # noqa: S608 # of constants
)

SESSIONS = KpiTable(
    "kpi_sessions",
    ("event_date", "game_name", "gamer_id", "session_id"),
    _schema(
        ("event_date", _DAY), ("game_name", _TEXT), ("gamer_id", _TEXT), ("session_id", _TEXT),
        ("first_event", MICROSECONDS_UTC), ("last_event", MICROSECONDS_UTC), ("halvings", _COUNT),
    ),
    f"""
    WITH merged AS (
      SELECT event_date, game_name, gamer_id, session_id,
        min(first_event) AS first_event, max(last_event) AS last_event
      FROM (SELECT event_date, game_name, gamer_id, session_id, first_event, last_event FROM kpi_sessions
        UNION ALL BY NAME
        SELECT event_date, game_name, gamer_id, session_id, first_event, last_event FROM visits
        WHERE session_id IS NOT NULL)
      GROUP BY ALL),
    depth AS (SELECT event_date, game_name, max(halvings) AS halvings FROM kpi_sessions GROUP BY ALL),
    sample AS (
      SELECT merged.*, coalesce(depth.halvings, 0) AS halvings
      FROM merged LEFT JOIN depth USING (event_date, game_name)
      WHERE {_kept("session_id", "coalesce(depth.halvings, 0)")}),
    grown AS (
      SELECT event_date, game_name,
        CAST(max(halvings) + greatest(0, ceil(log2(count(*) / any_value(exact.sessions)))) AS BIGINT) AS halvings
      FROM sample CROSS JOIN exact GROUP BY ALL)
    SELECT event_date, game_name, gamer_id, session_id, first_event, last_event, grown.halvings
    FROM sample JOIN grown USING (event_date, game_name)
    WHERE {_kept("session_id", "grown.halvings")}
    """,  # noqa: S608 # of constants
)  # fmt: skip

DAILY = KpiTable(
    "kpi_daily",
    ("event_date", "game_name"),
    _schema(
        ("event_date", _DAY), ("game_name", _TEXT), ("events", _COUNT), ("purchases", _COUNT), ("bookings", _MONEY),
        ("active_players", _COUNT), ("payers", _COUNT), ("conversion", _RATIO), ("arpdau", _RATIO), ("arppu", _RATIO),
        ("players_error", _RATIO), ("sessions", _COUNT), ("session_seconds_p50", _RATIO),
        ("session_seconds_p90", _RATIO), ("session_seconds_p99", _RATIO), ("sessions_error", _RATIO),
    ),
    f"""
    WITH happened AS (
      SELECT event_date, game_name, sum(events) AS events, sum(purchases) AS purchases, sum(bookings) AS bookings
      FROM kpi_hourly GROUP BY ALL),
    active AS (
      SELECT event_date, game_name, count(*) AS sample, count(*) FILTER (WHERE paid) AS paying
      FROM kpi_player_days GROUP BY ALL),
    played AS (
      SELECT event_date, game_name, count(*) AS sample, max(halvings) AS halvings,
        quantile_cont(epoch(last_event - first_event), [0.5, 0.9, 0.99]) AS seconds
      FROM kpi_sessions GROUP BY ALL),
    estimated AS (
      SELECT happened.*,
        coalesce(active.sample, 0) << coalesce(depth.halvings, 0) AS active_players,
        coalesce(active.paying, 0) << coalesce(depth.halvings, 0) AS payers,
        {_error("coalesce(active.sample, 0)", "coalesce(depth.halvings, 0)")} AS players_error,
        coalesce(played.sample, 0) << coalesce(played.halvings, 0) AS sessions,
        {_error("coalesce(played.sample, 0)", "coalesce(played.halvings, 0)")} AS sessions_error,
        played.seconds
      FROM happened LEFT JOIN active USING (event_date, game_name) LEFT JOIN player_depths AS depth USING (game_name)
        LEFT JOIN played USING (event_date, game_name))
    SELECT event_date, game_name, events, purchases, bookings, active_players, payers,
      payers / nullif(active_players, 0) AS conversion,
      CAST(bookings AS DOUBLE) / nullif(active_players, 0) AS arpdau,
      CAST(bookings AS DOUBLE) / nullif(payers, 0) AS arppu,
      players_error, sessions,
      seconds[1] AS session_seconds_p50, seconds[2] AS session_seconds_p90, seconds[3] AS session_seconds_p99,
      sessions_error
    FROM estimated SEMI JOIN changed USING (event_date)
    """,  # noqa: S608 # of constants
)  # fmt: skip

ACTIVE_PLAYERS = KpiTable(
    "kpi_active_players",
    ("event_date", "game_name"),
    _schema(
        ("event_date", _DAY), ("game_name", _TEXT), ("dau", _COUNT), ("wau", _COUNT), ("mau", _COUNT),
        ("stickiness", _RATIO), ("players_error", _RATIO),
    ),
    f"""
    WITH days AS (
      SELECT event_date, game_name, gamer_id FROM kpi_player_days
      UNION ALL SELECT event_date, game_name, gamer_id FROM past_player_days),
    last_seen AS (
      SELECT windows.event_date, game_name, gamer_id, max(days.event_date) AS last_date
      FROM windows JOIN days
        ON days.event_date <= windows.event_date AND days.event_date > windows.event_date - {MONTH}
      GROUP BY ALL),
    active AS (
      SELECT event_date, game_name, halvings, count(*) FILTER (WHERE last_date = event_date) AS dau,
        count(*) FILTER (WHERE last_date > event_date - {WEEK}) AS wau, count(*) AS mau
      FROM last_seen JOIN player_depths USING (game_name)
      WHERE {_kept("gamer_id", "halvings")}
      GROUP BY ALL)
    SELECT event_date, game_name, dau << halvings AS dau, wau << halvings AS wau, mau << halvings AS mau,
      dau / mau AS stickiness, {_error("dau", "halvings")} AS players_error
    FROM active
    """,  # noqa: S608 # of constants
)  # fmt: skip

_RETURNED = ", ".join(
    f"count(DISTINCT days.gamer_id) FILTER (WHERE event_date = first_date + {n}) AS returned_{n}"
    for n in RETENTION_DAYS
)
# No player can have returned on a day that has not begun.
_KNOWN = ", ".join(
    f"CASE WHEN first_date + {n} <= newest THEN returned_{n} END AS returned_{n}" for n in RETENTION_DAYS
)

RETENTION = KpiTable(
    "kpi_retention",
    ("cohort_date", "game_name"),
    _schema(
        ("cohort_date", _DAY), ("game_name", _TEXT), ("new_players", _COUNT),
        *((f"day{n}_players", _COUNT) for n in RETENTION_DAYS),
        *((f"day{n}_retention", _RATIO) for n in RETENTION_DAYS),
        ("players_error", _RATIO),
    ),
    f"""
    WITH days AS (
      SELECT event_date, game_name, gamer_id
      FROM (SELECT * FROM kpi_player_days UNION ALL BY NAME SELECT * FROM past_player_days) AS days
      SEMI JOIN (SELECT cohort_date + unnest({list(RETENTION_DAYS)}) AS event_date FROM cohorts) AS asked
        USING (event_date)),
    members AS (
      SELECT first_date, game_name, gamer_id, halvings FROM kpi_players
      SEMI JOIN cohorts ON first_date = cohorts.cohort_date),
    counted AS (
      SELECT first_date, members.game_name, max(halvings) AS halvings, count(DISTINCT members.gamer_id) AS joined,
        any_value(newest) AS newest, {_RETURNED}
      FROM members
        LEFT JOIN days ON days.game_name = members.game_name AND days.gamer_id = members.gamer_id
          AND days.event_date - members.first_date IN {RETENTION_DAYS}
        CROSS JOIN (SELECT max(event_date) AS newest FROM newest)
      GROUP BY ALL),
    known AS (SELECT first_date, game_name, halvings, joined, {_KNOWN} FROM counted)
    SELECT first_date AS cohort_date, game_name, joined << halvings AS new_players,
      {", ".join(f"returned_{n} << halvings AS day{n}_players" for n in RETENTION_DAYS)},
      {", ".join(f"returned_{n} / joined AS day{n}_retention" for n in RETENTION_DAYS)},
      {_error("joined", "halvings")} AS players_error
    FROM known
    """,  # noqa: S608 # of constants
)  # fmt: skip

# In the order in which they are made. The players' own table is written last: what a batch changes in it says which
# cohorts are to be counted again, also when the batch runs a second time.
ALL = (PLAYERS, HOURLY, LATE, PLAYER_DAYS, SESSIONS, DAILY, ACTIVE_PLAYERS, RETENTION)
