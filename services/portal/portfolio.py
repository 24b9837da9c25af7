"""Daily figures of all games, their running experiments and segments, read in the background and kept for a minute."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from gamelake.model.errors import GamelakeError
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, QuestionReader
from services.portal.questions import QuestionFailedError, QuestionResult
from services.portal.running_experiments import RUNNING_EXPERIMENTS, VariantResult, results_of
from services.portal.segment_sizes import SEGMENT_SIZES, SegmentSize, sizes_of
from services.portal.settings import QueryLimits

DAYS = 14
_KEPT_SECONDS = 60.0
_LIMITS = QueryLimits(time=timedelta(seconds=60), rows=10_000)


def _question(name: str, title: str, columns: str, table: str) -> Question:
    return Question(
        name=name,
        title=title,
        grain="one row per event_date and game_name, of the last 14 days",
        asked_by="analyst",
        reader=QuestionReader.PRODUCT_MANAGER,
        engines=frozenset(QueryEngine),
        sql=f"""SELECT event_date, game_name, {columns}
FROM {table}
WHERE event_date > current_date - INTERVAL '{DAYS}' DAY AND event_date <= current_date
ORDER BY event_date, game_name
""",  # noqa: S608 # names of our own
    )


_PLAY = _question(
    "portfolio", "How are the games doing, day by day?", "active_players, bookings, events", "gold.kpi_daily"
)
_REVENUE = _question("revenue", "What do the games earn, day by day?", "revenue", "gold.revenue_per_day")


@dataclass(frozen=True, slots=True)
class GameDay:
    """The figures of a game on a day, or their sums over several games."""

    players: int = 0
    bookings: float = 0.0
    events: int = 0
    revenue: float = 0.0

    def __add__(self, other: "GameDay") -> "GameDay":
        """Add the figures of another game; two games have no player in common."""
        return GameDay(
            self.players + other.players,
            self.bookings + other.bookings,
            self.events + other.events,
            self.revenue + other.revenue,
        )


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The figures of the games.

    Attributes:
        days: the figures by day and game; every day of the period is there, oldest first.
        read_at: the time at which they were read; None: they never were.
        problem: why the newest reading failed; the figures are those of the one before.
        remedy: the command that helps then, if one is known.
        is_possible: False if the portal has no tables to read.
        has_revenue: False if revenue can't be read; it is 0 then.
        experiments: the results of the running experiments; empty if they can't be read.
        segments: the sizes of the games' segments; empty if they can't be read.
    """

    days: Mapping[date, Mapping[str, GameDay]]
    read_at: datetime | None = None
    problem: str = ""
    remedy: str = ""
    is_possible: bool = True
    has_revenue: bool = False
    experiments: Sequence[VariantResult] = ()
    segments: Sequence[SegmentSize] = ()

    @property
    def is_loading(self) -> bool:
        """True until the first reading has ended."""
        return self.is_possible and self.read_at is None and not self.problem

    @property
    def games(self) -> list[str]:
        """The names of the games with events."""
        return sorted({game for day in self.days.values() for game in day})

    def by_day(self, game: str = "") -> dict[date, GameDay]:
        """Return the figures of each day, of one game or of all."""
        return {
            day: total(figures for name, figures in games.items() if game in {"", name})
            for day, games in self.days.items()
        }

    def by_game(self) -> dict[str, GameDay]:
        """Return the figures of each game over all days; players count once on each day."""
        return {name: total(games.get(name, GameDay()) for games in self.days.values()) for name in self.games}


def total(figures: Iterable[GameDay]) -> GameDay:
    """Return the sum of figures."""
    return sum(figures, GameDay())


class PortfolioSource(Protocol):
    """The source of the portfolio."""

    def newest(self) -> Portfolio:
        """Return the figures at once: those read last, while newer ones are being read."""


class NoPortfolio:
    """The source of a portal without tables."""

    def newest(self) -> Portfolio:
        """See `PortfolioSource`."""
        return Portfolio({}, is_possible=False)


class PortfolioReader:
    """Reads the portfolio in a thread, so that no page waits for a query.

    Args:
        run: runs a question.
        clock: the time in seconds, by which a reading is old.
    """

    def __init__(
        self,
        run: Callable[[Question, QueryLimits], QuestionResult],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._clock = clock
        self._lock = threading.Lock()
        self._reads_again_at = float("-inf")
        self._newest = Portfolio({})

    def newest(self) -> Portfolio:
        """See `PortfolioSource`; starts to read if the figures are older than a minute."""
        with self._lock:
            if self._clock() >= self._reads_again_at:
                self._reads_again_at = float("inf")
                threading.Thread(target=self._read, name="portfolio", daemon=True).start()
            return self._newest

    def _read(self) -> None:
        try:
            found = portfolio_of(self._run(_PLAY, _LIMITS), datetime.now(UTC), self._optional(_REVENUE))
            experiments, segments = self._optional(RUNNING_EXPERIMENTS), self._optional(SEGMENT_SIZES)
            found = replace(found, experiments=results_of(experiments), segments=sizes_of(segments))
        except GamelakeError as error:
            remedy = error.remedy if isinstance(error, QuestionFailedError) else ""
            found = Portfolio(self._newest.days, self._newest.read_at, str(error), remedy)
        except Exception as error:  # the thread must not end silently: the page would wait for ever
            found = Portfolio(self._newest.days, self._newest.read_at, f"the figures can't be read: {error!r}")
        with self._lock:
            self._newest = found
            self._reads_again_at = self._clock() + _KEPT_SECONDS

    def _optional(self, question: Question) -> QuestionResult | None:
        """Run a question about tables that may be missing, such as exchange rates; None if it can't be run."""
        try:
            return self._run(question, _LIMITS)
        except GamelakeError:
            return None


def portfolio_of(result: QuestionResult, now: datetime, revenue: QuestionResult | None = None) -> Portfolio:
    """Return the portfolio with a day for each of the period.

    Args:
        result: rows of day, game, players, bookings and events.
        now: the time at which they were read.
        revenue: rows of day, game and revenue; None if it can't be read.
    """
    first = now.date() - timedelta(days=DAYS - 1)
    days: dict[date, dict[str, GameDay]] = {first + timedelta(days=place): {} for place in range(DAYS)}
    for row in result.rows:
        day, game, figures = _figures(row)
        days.setdefault(day, {})[game] = figures
    for row in () if revenue is None else revenue.rows:
        day, game = date.fromisoformat(str(row[0])[:10]), str(row[1])
        if game in days.get(day, {}):
            days[day][game] = replace(days[day][game], revenue=float(str(row[2] or 0)))
    return Portfolio(dict(sorted(days.items())), now, has_revenue=revenue is not None)


def _figures(row: Sequence[object]) -> tuple[date, str, GameDay]:
    day, game, players, bookings, events = row
    return (
        date.fromisoformat(str(day)[:10]),
        str(game),
        GameDay(int(str(players or 0)), float(str(bookings or 0)), int(str(events or 0))),
    )
