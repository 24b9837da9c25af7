"""The expected value of each measure in a minute, from recent values and from the hour of the day and of the week.

It covers all games at once: each row of an array is a game. The recent level is a median over blocks of five minutes,
so that an incident that has just begun does not lower the expected value. The same hours of former days and weeks show
how the level changes with time.
"""

from dataclasses import dataclass, field

import numpy as np

from gamelake.model.arrays import Flags, Floats, Ints

BLOCK = 5
_BLOCKS = 13  # an hour, and the block that may be the beginning of an incident
_MINUTES = 60
_HOUR, _DAY, _WEEK = 60, 24, 168
_KEPT_HOURS = 28 * _DAY + 2
_WEEKS, _DAYS = 4, 7
_LEAST_WEEKS, _LEAST_DAYS = 2, 3
# The weight of each new block in the running estimate of the spread.
_LEARNING = 0.05


@dataclass(slots=True)
class Baselines:
    """The expected values of one measure, for all games. One thread uses it at a time.

    Call `recall` for former hours first, then `take` or `skip` for each minute in order. Call `grow` before a minute
    with new games.

    Attributes:
        first_spread: the spread to assume for a new game.
        games: the number of games.
        recent: float64 of shape (games, 60): the measure in each of the last 60 minutes, the newest last.
        spread: float64 of shape (games,): the variance of the measure's sums divided by their mean. It is 1 for
            independent events, and more for events that arrive in bursts or have a value.
    """

    first_spread: float
    games: int = 0
    recent: Floats = field(default_factory=lambda: np.zeros((0, _MINUTES)))
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    # For each complete block of usual minutes, the mean per minute and the middle minute; the newest is the last.
    _blocks: Floats = field(default_factory=lambda: np.full((0, _BLOCKS), np.nan))
    _middles: Ints = field(default_factory=lambda: np.zeros((0, _BLOCKS), np.int64))
    _block_sum: Floats = field(default_factory=lambda: np.zeros(0))
    _block_good: Floats = field(default_factory=lambda: np.zeros(0))
    # The mean per minute of each hour; the last is the hour before the current one.
    _hours: Floats = field(default_factory=lambda: np.full((0, _KEPT_HOURS), np.nan))
    _hour_sum: Floats = field(default_factory=lambda: np.zeros(0))
    _hour_good: Floats = field(default_factory=lambda: np.zeros(0))
    _hour: int = -1
    _first_hour: int = -1
    _seasons: dict[int, Floats] = field(default_factory=dict)

    def grow(self, games: int) -> None:
        """Extend the arrays by rows for new games; `games` is the new number of games."""
        more = games - self.games
        if more <= 0:
            return
        self.games = games
        self.recent = np.vstack([self.recent, np.zeros((more, _MINUTES))])
        self.spread = np.concatenate([self.spread, np.full(more, self.first_spread)])
        self._blocks = np.vstack([self._blocks, np.full((more, _BLOCKS), np.nan)])
        self._middles = np.vstack([self._middles, np.zeros((more, _BLOCKS), np.int64)])
        self._hours = np.vstack([self._hours, np.full((more, _KEPT_HOURS), np.nan)])
        for name in ("_block_sum", "_block_good", "_hour_sum", "_hour_good"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more)]))
        self._seasons.clear()

    def expected(self, minute: int) -> Floats:
        """Return the expected value of each game in a minute.

        Args:
            minute: minutes since 1970.

        Returns:
            float64 of shape (games,), in the games' order; NaN if there is too little data about a game.
        """
        # The newest block may be the beginning of an incident.
        blocks, middles = self._blocks[:, :-1], self._middles[:, :-1]
        known = np.isfinite(blocks).sum(axis=1) >= _BLOCKS // 2
        return np.where(known, self._level(minute, blocks, middles), np.nan)

    def _level(self, minute: int, blocks: Floats, middles: Ints) -> Floats:
        if not self._has_seasons:
            return median_of_rows(blocks)
        # The lower of the two neighbouring hours, so that a fall at a full hour each day is not reported.
        hour = (minute - _HOUR // 2) // _HOUR
        now = np.minimum(self._season_of(hour), self._season_of(hour + 1))
        with np.errstate(all="ignore"):
            change = now[:, None] / self._season(middles)
        return median_of_rows(blocks * np.where(np.isfinite(change) & (change > 0), change, 1.0))

    @property
    def _has_seasons(self) -> bool:
        return self._hour - self._first_hour >= (_LEAST_DAYS - 1) * _DAY

    def take(self, minute: int, values: Floats, usual: Flags) -> None:
        """Learn from a minute.

        Args:
            minute: minutes since 1970.
            values: float64, the measure of each game, in the games' order.
            usual: bool, one for each game: false during an incident; its value then counts only for the hours' medians.
        """
        self.recent = np.roll(self.recent, -1, axis=1)
        self.recent[:, -1] = values
        self._enter_hour(minute // _HOUR)
        self._block_sum += np.where(usual, values, 0)
        self._block_good += usual
        # The median outvotes one unusual hour with the same hours of other days. If it recurs each day, it is usual.
        self._hour_sum += values
        self._hour_good += 1
        if minute % BLOCK == BLOCK - 1:
            self._end_block(minute - BLOCK // 2)

    def recall(self, row: int, hour: int, mean: float) -> None:
        """Learn a former hour of a game, before the first call of `take`.

        Args:
            row: the game's row.
            hour: hours since 1970.
            mean: the mean of the measure per minute.
        """
        self._first_hour = hour if self._first_hour < 0 else min(hour, self._first_hour)
        if hour >= self._hour:
            self._enter_hour(hour + 1)
        place = _KEPT_HOURS + hour - self._hour
        if place >= 0:
            self._hours[row, place] = mean

    def skip(self, minutes: int) -> None:
        """Pass over this many minutes without data."""
        self.recent = np.hstack([self.recent, np.zeros((self.games, min(minutes, _MINUTES)))])[:, -_MINUTES:]
        self._block_good[:] = 0
        self._block_sum[:] = 0

    def _end_block(self, middle: int) -> None:
        # Only complete blocks count: half a block is often the beginning or the end of an incident.
        whole = self._block_good == BLOCK
        expected = BLOCK * self._level(middle, self._blocks, self._middles)
        with np.errstate(all="ignore"):
            strayed = (self._block_sum - expected) ** 2 / expected
        # A single burst must not dominate: a deviation counts as at most ten times the spread.
        learns = whole & np.isfinite(strayed)
        strayed = np.where(learns, np.minimum(strayed, 10 * self.spread), self.spread)
        self.spread = np.maximum(self.spread + _LEARNING * (strayed - self.spread), 1.0)
        for kept, newest in ((self._blocks, self._block_sum / BLOCK), (self._middles, np.full(self.games, middle))):
            kept[whole, :-1] = kept[whole, 1:]
            kept[whole, -1] = newest[whole]
        self._block_sum[:] = 0
        self._block_good[:] = 0

    def _enter_hour(self, hour: int) -> None:
        if hour == self._hour:
            return
        if self._hour >= 0:
            mean = np.where(self._hour_good >= _HOUR // 2, self._hour_sum / np.maximum(self._hour_good, 1), np.nan)
            gone = min(hour - self._hour, _KEPT_HOURS)
            passed = np.full((self.games, gone), np.nan)
            passed[:, 0] = mean
            self._hours = np.hstack([self._hours, passed])[:, -_KEPT_HOURS:]
        elif self._first_hour < 0:
            self._first_hour = hour
        self._hour = hour
        self._hour_sum[:] = 0
        self._hour_good[:] = 0
        self._seasons.clear()

    def _season(self, minutes: Ints) -> Floats:
        """Interpolate each game's seasonal value at some minutes, between the middles of hours; NaN if unknown."""
        hours, parts = np.divmod(minutes - _HOUR // 2, _HOUR)
        season = np.full(minutes.shape, np.nan)
        for hour in np.unique(hours):
            before, after = self._season_of(int(hour)), self._season_of(int(hour) + 1)
            between = before[:, None] + (after - before)[:, None] * (parts / _HOUR)
            season = np.where(hours == hour, between, season)
        return season

    def _season_of(self, hour: int) -> Floats:
        """Return the median of the same hour of former weeks, or else of former days; NaN if there are too few."""
        if hour not in self._seasons:
            weeks = self._past(hour, [_WEEK * n for n in range(1, _WEEKS + 1)])
            days = self._past(hour, [_DAY * n for n in range(1, _DAYS + 1)])
            by_day = np.where(np.isfinite(days).sum(axis=1) >= _LEAST_DAYS, median_of_rows(days), np.nan)
            enough = np.isfinite(weeks).sum(axis=1) >= _LEAST_WEEKS
            self._seasons[hour] = np.where(enough, median_of_rows(weeks), by_day)
        return self._seasons[hour]

    def _past(self, hour: int, ago: list[int]) -> Floats:
        places = [_KEPT_HOURS + hour - each - self._hour for each in ago]
        nothing = np.full(self.games, np.nan)
        return np.column_stack([self._hours[:, at] if 0 <= at < _KEPT_HOURS else nothing for at in places])


def median_of_rows(values: Floats) -> Floats:
    """Compute the median of each row.

    Args:
        values: float64 of shape (rows, values), NaN for unknown values.

    Returns:
        float64 of shape (rows,), NaN for rows without a known value.
    """
    ordered = np.sort(values, axis=1)  # NaN comes last
    known = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    lower, upper = np.maximum((known - 1) // 2, 0), np.maximum(known // 2, 0)
    upper = np.minimum(upper, values.shape[1] - 1)
    middle = (ordered[rows, lower] + ordered[rows, upper]) / 2
    return np.where(known > 0, middle, np.nan)
