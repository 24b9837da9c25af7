"""The calendar of games: the moments at which days begin, end, and stop to be provisional."""

from collections.abc import Collection
from datetime import date

import pyarrow as pa

from gamelake.contract.time_zones import TimeZone

# The name of the relation that SQL joins with rows of one game.
CALENDAR = "calendar"
# Most late events come in these 180 minutes.
_LATE_SECONDS = 180 * 60
_SECONDS, _MOMENT = pa.timestamp("s"), pa.timestamp("us")


def calendar(zone: TimeZone, days: Collection[date]) -> pa.Table:
    """Return a row for each day: `event_date`, `begins`, `ends`, `time_zone` and `provisional_until`.

    Args:
        zone: the zone of the days.
        days: the days.
    """
    ordered = sorted(set(days))
    begins, ends = [zone.begins(day) for day in ordered], [zone.ends(day) for day in ordered]
    columns = {"begins": begins, "ends": ends, "provisional_until": [end + _LATE_SECONDS for end in ends]}
    return pa.table(
        {
            "event_date": pa.array(ordered, pa.date32()),
            "time_zone": pa.repeat(pa.scalar(zone.name, pa.string()), len(ordered)),
            **{name: pa.array(seconds, _SECONDS).cast(_MOMENT) for name, seconds in columns.items()},
        }
    )
