"""The SQL that turns changed rows of gold's player days into changes of each player."""

from dataclasses import dataclass

from gamelake.serving.kpis.numbers import PLAYER_KEY
from gamelake.serving.kpis.sources import PLAYER_DAYS
from gamelake.serving.kpis.tables import MONTH, WEEK


@dataclass(frozen=True, slots=True)
class Trait:
    """A value of a player that is taken from the first or the last day with such a value.

    Attributes:
        name: the trait's name.
        column: the column of player days with the value; "" if the day itself is the value.
        is_last: True if the last of these days decides, False if the first does.
    """

    name: str
    column: str
    is_last: bool = True


TRAITS = (
    Trait("first_seen", "", is_last=False),
    Trait("last_seen", ""),
    Trait("last_purchase", ""),
    Trait("first_version", "app_version", is_last=False),
    Trait("app_version", "app_version"),
    Trait("platform", "platform"),
    Trait("country", "country"),
)
TEXTS = tuple(trait.name for trait in TRAITS if trait.column)
# Each sum of a player: the summed column, and the window's length in days; 0 for all days.
SUMS = {
    "events": ("event_count", 0),
    "sessions": ("session_count", 0),
    "purchases": ("purchase_count", 0),
    "bookings": ("micros", 0),
    "events_7d": ("event_count", WEEK),
    "sessions_7d": ("session_count", WEEK),
    "purchases_30d": ("purchase_count", MONTH),
    "bookings_30d": ("micros", MONTH),
}
WINDOWS = tuple(name for name, (_, days) in SUMS.items() if days)
_COUNTS = ("event_count", "session_count", "purchase_count", "micros")
_VALUES = ("country", "platform", "app_version")
# The gateway accepts no bookings beyond DECIMAL(18, 6); here they count as 0.
_DAY = f"""
    SELECT game_name, {PLAYER_KEY} AS key, gamer_id, event_date, session_count, event_count, purchase_count,
      coalesce(CAST(TRY_CAST(coalesce(bookings, 0) AS DECIMAL(18, 6)) * 1000000 AS BIGINT), 0) AS micros,
      country, platform, app_version"""


def _changed_days() -> str:
    """Return the statement for the days of players whose rows differ between the relations `came` and `went`."""
    sums = ", ".join(f"sum(sign * {name}) AS {name}" for name in _COUNTS)
    values = ", ".join(
        f"max({name}) FILTER (sign = {sign}) AS {prefix}{name}"
        for sign, prefix in ((1, ""), (-1, "old_"))
        for name in _VALUES
    )
    bought = "bool_or(purchase_count > 0) FILTER (sign = {})"
    differs = " OR ".join(
        [
            "bool_or(sign = 1) <> bool_or(sign = -1)",
            *(f"sum(sign * {name}) <> 0" for name in _COUNTS),
            *(f"max({name}) FILTER (sign = 1) IS DISTINCT FROM max({name}) FILTER (sign = -1)" for name in _VALUES),
        ]
    )
    return f"""
        SELECT game_name, key, event_date, any_value(gamer_id) AS gamer_id, {sums}, {values},
          bool_or(sign = 1) AS stands, bool_or(sign = -1) AS stood,
          coalesce({bought.format(1)}, false) AS bought, coalesce({bought.format(-1)}, false) AS had_bought
        FROM (SELECT *, 1 AS sign FROM ({_DAY} FROM came WHERE {PLAYER_DAYS.rows})
          UNION ALL SELECT *, -1 AS sign FROM ({_DAY} FROM went WHERE {PLAYER_DAYS.rows}))
        GROUP BY game_name, key, event_date HAVING {differs}"""  # noqa: S608 # constants


def _decides(trait: Trait, *, before: bool) -> str:
    """Return the SQL condition under which a changed day can decide a trait, or could before its change."""
    row = "stood" if before else "stands"
    if trait.column:
        return f"{row} AND {'old_' if before else ''}{trait.column} IS NOT NULL"
    if trait.name == "last_purchase":
        return "had_bought" if before else "bought"
    return row


def _trait_columns(trait: Trait) -> str:
    now, before = _decides(trait, before=False), _decides(trait, before=True)
    lost = f"({before}) AND NOT ({now})"
    columns = [
        f"{'max' if trait.is_last else 'min'}(event_date) FILTER ({now}) AS {trait.name}_day",
        f"min(event_date) FILTER ({lost}) AS {trait.name}_lost_from",
        f"max(event_date) FILTER ({lost}) AS {trait.name}_lost_to",
    ]
    if trait.column:
        function = "arg_max" if trait.is_last else "arg_min"
        columns.append(f"{function}({trait.column}, event_date) FILTER ({now}) AS {trait.name}")
    return ", ".join(columns)


def _sum_columns() -> str:
    return ", ".join(map(_sum, SUMS))


def _sum(name: str) -> str:
    part, days = SUMS[name]
    window = f" FILTER (event_date > today - {days})" if days else ""
    return f"CAST(coalesce(sum({part}){window}, 0) AS BIGINT) AS {name}"


# The changes of each player between the relations `went` and `came` (rows of player days); `clock` has the day of each
# game.
CHANGES = f"""
    SELECT game_name, key, any_value(gamer_id) AS gamer_id, bool_or(stood) AS stood, {_sum_columns()},
      {", ".join(map(_trait_columns, TRAITS))}
    FROM ({_changed_days()}) JOIN clock USING (game_name)
    GROUP BY game_name, key ORDER BY game_name"""  # noqa: S608 # constants

# The sums of the windows of each player, from the relation `recent`, which has the rows of the windows' days.
RECENT_SUMS = f"""
    SELECT game_name, key, {", ".join(map(_sum, WINDOWS))}
    FROM ({_DAY} FROM recent WHERE {PLAYER_DAYS.rows}) JOIN clock USING (game_name)
    GROUP BY game_name, key ORDER BY game_name"""  # noqa: S608 # constants
