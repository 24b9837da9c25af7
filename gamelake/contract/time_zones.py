"""The days of games in their reporting time zones, from the rules of the locked package `tzdata`.

Gold's engine evaluates comparisons with moments in UTC, not zones: DuckDB, the machine and the package each have their
own version of the rules, and one day must not differ between two programs.
"""

import hashlib
import zoneinfo
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib import resources

DEFAULT_ZONE = "UTC"
# Rules count between these moments (1970 and 2100); before and after, the offset of the nearer one holds.
_FIRST, _LAST = 0, int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()


def is_zone(name: str) -> bool:
    """Return True if the zone has rules under this name of the IANA database."""
    try:
        _rules(name)
    except (ValueError, OSError, ModuleNotFoundError):
        return False
    return True


@lru_cache
def _rules(name: str) -> zoneinfo.ZoneInfo:
    if name not in _names():
        raise ValueError(f"the time zone {name} is unknown")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


@lru_cache
def _names() -> frozenset[str]:
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset({*listed, DEFAULT_ZONE})


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a zone's offset stays the same.

    Attributes:
        start: its first second, since 1970 in UTC.
        end: the first second after it.
        offset: the seconds by which the zone is ahead of UTC.
    """

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A zone of the IANA database.

    Example:
        >>> str(TimeZone("Asia/Tokyo").day(datetime(2026, 11, 30, 15, tzinfo=UTC)))
        '2026-12-01'
    """

    name: str

    def day(self, moment: datetime) -> date:
        """Return the zone's day at a moment."""
        second = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() // 1)
        return date.fromordinal(_EPOCH + (second + self._offset(second)) // _DAY)

    def begins(self, day: date) -> int:
        """Return the first second, since 1970 in UTC, at which the zone's calendar shows the day or a later one."""
        midnight = (day.toordinal() - _EPOCH) * _DAY
        spans = self.spans(midnight - _DAY, midnight + _DAY)
        return next(max(span.start, midnight - span.offset) for span in spans if span.end + span.offset > midnight)

    def sql(self, first: date, last: date) -> str:
        """Return SQL for the zone's day, over the columns `event_time` and `event_date`.

        Args:
            first: the first day, in UTC, of the rows.
            last: the last one. Events outside of these days get a wrong day.
        """
        if self.name == DEFAULT_ZONE:
            return "event_date"
        start, end = ((day.toordinal() - _EPOCH) * _DAY for day in (first, last))
        return _day_sql(self.spans(start, end + _DAY))

    def utc_days_of(self, day: date) -> list[date]:
        """Return the days of UTC that have a moment of a day of the zone; at most three."""
        return [near for near in _neighbours(day) if day in self.days_of(near)]

    def ends(self, day: date) -> int:
        """Return the second, since 1970 in UTC, from which on the calendar shows only later days.

        The next day begins at this second, unless clocks repeat an hour across midnight.
        """
        midnight = (day.toordinal() - _EPOCH + 1) * _DAY
        spans = reversed(self.spans(midnight - _DAY, midnight + _DAY))
        return next(min(span.end, midnight - span.offset) for span in spans if span.start + span.offset < midnight)

    def days_of(self, utc_day: date) -> list[date]:
        """Return the zone's days that have a moment of a day of UTC; at most three."""
        start = (utc_day.toordinal() - _EPOCH) * _DAY
        spans = self.spans(start, start + _DAY)
        first = min(span.start + span.offset for span in spans) // _DAY
        last = max(span.end + span.offset - 1 for span in spans) // _DAY
        ordinals = range(max(_EPOCH + first, date.min.toordinal()), min(_EPOCH + last, date.max.toordinal()) + 1)
        return [date.fromordinal(ordinal) for ordinal in ordinals]

    @property
    def rules(self) -> str:
        """The name and a hash of all offsets, which changes if a release of `tzdata` changes one of them."""
        return _rules_of(self)

    def spans(self, start: int, end: int) -> list[Span]:
        """Split a time into spans of one offset; seconds since 1970 in UTC."""
        spans, begun, offset, checked = list[Span](), start, self._offset(start), start
        for second in [*range(max(start, _FIRST) + _DAY, min(end, _LAST + 1), _DAY), end]:
            if self._offset(second) != offset:
                changed = self._change(checked, second)
                spans.append(Span(begun, changed, offset))
                begun, offset = changed, self._offset(changed)
            checked = second
        # The offset may have changed at `end` itself.
        return [span for span in [*spans, Span(begun, end, offset)] if span.start < span.end and span.start < end]

    def _change(self, low: int, high: int) -> int:
        """Return the second at which the offset of `low` ends."""
        low = max(low, _FIRST)
        before = self._offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._offset(middle) == before else (low, middle)
        return high

    def _offset(self, second: int) -> int:
        if self.name == DEFAULT_ZONE:
            return 0
        moment = datetime.fromtimestamp(min(max(second, _FIRST), _LAST), _rules(self.name))
        return int(moment.utcoffset().total_seconds())  # type: ignore[union-attr] # a zone's moment has an offset


@lru_cache
def _rules_of(zone: TimeZone) -> str:
    offsets = [(span.start, span.offset) for span in zone.spans(_FIRST, _LAST)]
    return f"{zone.name} {hashlib.sha256(repr(offsets).encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class Zones:
    """The reporting time zones of games.

    Attributes:
        names: the name of the zone by the game's title (`game_name`); titles without one are in UTC.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, zone_by_title: Iterable[tuple[str, str]]) -> "Zones":
        """Build the zones of titles, without those in UTC."""
        return cls({title: zone for title, zone in sorted(zone_by_title) if zone != DEFAULT_ZONE})

    def zone(self, title: str) -> TimeZone:
        """Return the zone of a game's title."""
        return TimeZone(self.names.get(title, DEFAULT_ZONE))

    @property
    def all(self) -> list[TimeZone]:
        """The different zones, UTC first."""
        return [TimeZone(DEFAULT_ZONE), *(TimeZone(name) for name in sorted(set(self.names.values())))]

    @property
    def rules(self) -> dict[str, str]:
        """The rules of each title's zone, for comparison by `changed_titles`; titles without rules are in UTC."""
        return {title: TimeZone(name).rules for title, name in self.names.items()}

    def changed_titles(self, former: Mapping[str, str]) -> frozenset[str]:
        """Return the titles whose zone, or its rules, differ from former ones; see `rules`."""
        rules = self.rules
        return frozenset(title for title in former.keys() | rules.keys() if former.get(title) != rules.get(title))

    def reporting_days(self, utc_days: Collection[date | None]) -> frozenset[date | None]:
        """Return the games' days that may have events of some days of UTC; None for None."""
        if not self.names:
            return frozenset(utc_days)
        zones = self.all
        found = {each for day in utc_days if day is not None for zone in zones for each in zone.days_of(day)}
        return frozenset({*found, *({None} & set(utc_days))})

    def utc_days(self, reporting_days: Collection[date | None]) -> frozenset[date | None]:
        """Return the days of UTC that may have events of some of the games' days; None for None."""
        wanted = frozenset(reporting_days)
        if not self.names:
            return wanted
        near = {each for day in wanted if day is not None for each in _neighbours(day)}
        return frozenset({*(day for day in near if wanted & self.reporting_days([day])), *({None} & wanted)})

    def sql(self, first: date, last: date) -> str:
        """Return SQL for the day in the game's zone, over the columns `game_name`, `event_time` and `event_date`.

        Args:
            first: the first day, in UTC, of the rows.
            last: the last one. Events outside of these days get a wrong day.
        """
        start, end = ((day.toordinal() - _EPOCH) * _DAY for day in (first, last))
        cases = [
            f"WHEN game_name IN ({self._titles(zone)}) THEN {_day_sql(zone.spans(start, end + _DAY))}"
            for zone in self.all[1:]
        ]
        return f"CASE {' '.join(cases)} ELSE event_date END" if cases else "event_date"

    def trino_sql(self, column: str, in_utc: str = "") -> str:
        """Return Trino's SQL for the day of a time in the game's zone; Trino uses its own version of the rules.

        Args:
            column: the column with the time. The SQL reads `game_name` too.
            in_utc: SQL for the day in UTC; "" to compute it.
        """
        cases = [
            f"WHEN game_name IN ({self._titles(zone)}) THEN CAST({column} AT TIME ZONE '{zone.name}' AS date)"
            for zone in self.all[1:]
        ]
        in_utc = in_utc or f"CAST({column} AS date)"
        return f"CASE {' '.join(cases)} ELSE {in_utc} END" if cases else in_utc

    def _titles(self, zone: TimeZone) -> str:
        return ", ".join(f"'{_escaped(title)}'" for title, name in self.names.items() if name == zone.name)


UTC_DAYS = Zones()


def _neighbours(day: date) -> list[date]:
    ordinals = range(max(day.toordinal() - 1, 1), min(day.toordinal() + 1, date.max.toordinal()) + 1)
    return [date.fromordinal(ordinal) for ordinal in ordinals]


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _day_sql(spans: Sequence[Span]) -> str:
    """Return SQL that searches the span of `event_time` in the fewest comparisons."""
    if len(spans) == 1:
        return f"CAST(event_time + INTERVAL '{spans[0].offset}' SECOND AS DATE)"
    middle = len(spans) // 2
    until = datetime.fromtimestamp(spans[middle].start, UTC).strftime("%Y-%m-%d %H:%M:%S")
    earlier, later = _day_sql(spans[:middle]), _day_sql(spans[middle:])
    return f"CASE WHEN event_time < TIMESTAMP '{until}' THEN {earlier} ELSE {later} END"
