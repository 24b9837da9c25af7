"""How often something happens, as a person writes it: `daily at 01:15`, `weekly on sunday at 02:30`, `every 6 hours`.

All times are UTC: no day has 23 hours there, and no time comes twice.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The epoch was a Thursday.
_DAYS_OF_THE_EPOCH = ("thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday")
_FORMS = "say 'daily at 01:15', 'weekly on sunday at 02:30', 'every 6 hours' or 'every 30 minutes'; times are UTC"


@dataclass(frozen=True, slots=True)
class Cadence:
    """Moments at equal distances: one of them, and the distance."""

    one: datetime
    period: timedelta

    def after(self, moment: datetime) -> datetime:
        """The first of the moments that is later than this one."""
        return self.one + ((moment - self.one) // self.period + 1) * self.period


def parse_cadence(text: str) -> Cadence:
    """Read what a person wrote.

    Raises:
        ValueError: it is none of the forms; says which there are.
    """
    words = " ".join(text.lower().split())
    if found := re.fullmatch(r"daily at ([01]\d|2[0-3]):([0-5]\d)", words):
        return Cadence(_EPOCH + _time(found[1], found[2]), timedelta(days=1))
    if found := re.fullmatch(rf"weekly on ({'|'.join(_DAYS_OF_THE_EPOCH)}) at ([01]\d|2[0-3]):([0-5]\d)", words):
        day = timedelta(days=_DAYS_OF_THE_EPOCH.index(found[1]))
        return Cadence(_EPOCH + day + _time(found[2], found[3]), timedelta(weeks=1))
    if found := re.fullmatch(r"every ([1-9]\d{0,3}) (minutes|hours)", words):
        return Cadence(_EPOCH, timedelta(**{found[2]: int(found[1])}))
    raise ValueError(f"'{text}' says no time; {_FORMS}")


def _time(hour: str, minute: str) -> timedelta:
    return timedelta(hours=int(hour), minutes=int(minute))
