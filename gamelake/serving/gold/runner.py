"""Finds all gold tables, refreshes each at its interval, and reports the outcome of each run."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Protocol

import msgspec

from gamelake.contract.aggregates import AggregateSpec, Over
from gamelake.contract.games import GamesContract
from gamelake.contract.time_zones import UTC_DAYS, Zones
from gamelake.delta.comments import Comments
from gamelake.delta.listing import games_of
from gamelake.ledger.holds import Hold, holds
from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.model.observers import all_of
from gamelake.objects.store import Store
from gamelake.serving.gold.definition import AggregateDefinition, define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome


def aggregate_comments(contract: GamesContract, spec: AggregateSpec, game: str) -> Comments:
    """Return the comments of one game's table of an aggregate. Key columns take their meaning from silver.

    Args:
        contract: the games contract, with the tables' columns.
        spec: the aggregate.
        game: the game's name in paths; "" for a table over all games.
    """
    title = next((each.game_name for each in contract.games if each.name == game), game)
    in_silver = {
        column: meaning
        for table in (SILVER_EVENTS, spec.source(game))
        if table in contract.tables
        for column, meaning in contract.tables[table].columns.items()
        if column in spec.group_by
    }
    return Comments(spec.description.replace("<game>", title), {**in_silver, **spec.descriptions})


class FailedRefresh(msgspec.Struct, frozen=True, kw_only=True):
    """A table that could not be refreshed; the other tables were.

    Attributes:
        table: the table's path.
        reason: the error's message.
    """

    table: str
    reason: str


def attempt(refresh: GoldRefresh) -> Refreshed | FailedRefresh:
    """Refresh one table, and return a failure instead of raising it. Spark tasks call this."""
    try:
        return refresh()
    except GamelakeError as error:
        return FailedRefresh(table=refresh.table, reason=str(error))
    except Exception as error:  # one game's table must not hold up another's, whatever the error
        return FailedRefresh(table=refresh.table, reason=f"{type(error).__name__}: {error}")


class GoldTables:
    """All gold tables of a lakehouse; each new game adds some.

    Raises:
        ContractError: an aggregate of the contract is invalid, or can't be refreshed in its declared way.
    """

    def __init__(self, store: Store, contract: GamesContract) -> None:
        self._store = store
        self._contract = contract
        self._definitions = [define(spec) for spec in contract.aggregates]
        self._zones = contract.zones
        self._zones_of = {
            game.name: Zones.of((title, game.time_zone) for title in game.match) for game in contract.games
        }

    def now(self) -> list[GoldRefresh]:
        """List the tables of every game that has a silver table, in the contract or not, and those over all games."""
        games, held = games_of(self._store), holds(self._store, datetime.now(UTC))
        of_all = [each for each in self._definitions if each.spec.over is Over.ALL_GAMES]
        pairs = [(each, game) for game in games for each in self._definitions if each not in of_all]
        tables = (*pairs, *((each, "") for each in of_all))
        return [self._table(each, game, held.get(each.spec.source(game), ())) for each, game in tables]

    def up_to_date(self, due: Sequence[GoldRefresh], last: Mapping[str, Refreshed]) -> list[Refreshed | None]:
        """Check which tables are up to date.

        Args:
            due: the tables.
            last: the last results of this process, by table.

        Returns:
            For each table, in the order of `due`: the last result as UNCHANGED, or None if the table must be refreshed.
        """

        def unchanged(refresh: GoldRefresh) -> Refreshed | None:
            before = last.get(refresh.table)
            try:
                if before is None or not refresh.is_up_to_date(self._store, before):
                    return None
            except Exception:  # the refresh will report the fault
                return None
            return msgspec.structs.replace(
                before, outcome=RefreshOutcome.UNCHANGED, rows_written=0, unfit=0, seconds=0.0
            )

        with ThreadPoolExecutor(self._store.at_once) as pool:
            return list(pool.map(unchanged, due))

    def _table(self, definition: AggregateDefinition, game: str, held: Sequence[Hold]) -> GoldRefresh:
        spec = definition.spec
        comments = aggregate_comments(self._contract, spec, game)
        why = "; ".join(f"since {each.since:%Y-%m-%d %H:%M} by {each.by}: {each.why}" for each in held)
        source, table = spec.source(game), spec.table(game)
        zones = self._zones if spec.over is Over.ALL_GAMES else self._zones_of.get(game, UTC_DAYS)
        return GoldRefresh(self._store.location, source, table, definition, comments=comments, held=why, zones=zones)


@dataclass(slots=True)
class RefreshSchedule:
    """Remembers when each table was last refreshed. Times are seconds on one monotonic clock."""

    _refreshed_at: dict[str, float] = field(default_factory=dict)

    def due(self, tables: Sequence[GoldRefresh], now: float) -> list[GoldRefresh]:
        """Return the tables whose interval is over, and record them as refreshed now."""
        due = [each for each in tables if now >= self._next(each)]
        self._refreshed_at |= {each.table: now for each in due}
        return due

    def pause(self, tables: Sequence[GoldRefresh], now: float, longest: timedelta) -> float:
        """Return the seconds until the next table is due; at most `longest`, since new games may appear."""
        return max(0.0, min([longest.total_seconds(), *(self._next(each) - now for each in tables)]))

    def _next(self, refresh: GoldRefresh) -> float:
        refreshed_at = self._refreshed_at.get(refresh.table)
        return 0.0 if refreshed_at is None else refreshed_at + refresh.definition.spec.interval.total_seconds()


def summary(results: Sequence[Refreshed | FailedRefresh], seconds: float) -> dict[str, object]:
    """Summarize a run as the fields of its log line: tables, outcomes, rows written, seconds."""
    done = [each for each in results if isinstance(each, Refreshed)]
    outcomes = Counter(each.outcome.value for each in done)
    outcomes["failed"] = len(results) - len(done)
    return {
        "tables": len(results),
        "outcomes": {outcome: count for outcome, count in sorted(outcomes.items()) if count},
        "rows": sum(each.rows_written for each in done),
        "seconds": round(seconds, 1),
    }


log = event_logger(__name__)

# The list of games is read again at least this often.
_LONGEST_PAUSE = timedelta(seconds=15)

Result = Refreshed | FailedRefresh
# Attempts every refresh, in any order. Yields the results in the order of the argument, as they become available.
RunAll = Callable[[Sequence[GoldRefresh]], Iterable[Result]]


class GoldObserver(Protocol):
    """Is notified of runs.

    The runner calls all methods on its own thread: `table_refreshed` and then `mark_alive` for each table of a run,
    `run_finished` at the end of the run, and `mark_alive` again before it waits. No method may raise, since an error
    would end the job.
    """

    def table_refreshed(self, refresh: GoldRefresh, result: Result) -> None:
        """Record that a run has refreshed a table, or failed to."""

    def run_finished(self, seconds: float) -> None:
        """Record that a run is over; `seconds` is its duration."""

    def mark_alive(self) -> None:
        """Record that the job is alive, even if no table was due."""


class GoldRunner:
    """Refreshes the gold tables of one lakehouse.

    Args:
        tables: the tables.
        run_all: attempts refreshes, in parallel if it can, and yields the results in order.
        observers: are notified of each table and run.
        following: refreshes the tables that are computed from gold's tables, after each run.
    """

    def __init__(
        self,
        tables: GoldTables,
        run_all: RunAll,
        observers: Sequence[GoldObserver] = (),
        following: Callable[[], Sequence[Result]] = lambda: (),
    ) -> None:
        self._tables = tables
        self._run_all = run_all
        self._observer = all_of(observers)
        self._following = following
        self._last: dict[str, Refreshed] = {}

    def once(self) -> Sequence[Result]:
        """Refresh every table now, then the tables that follow from them; return one result per table."""
        return [*self._run_tables(self._tables.now()), *self._following()]

    def until(self, stop: Event) -> None:
        """Refresh each table at its own interval until asked to stop, which is checked between runs."""
        schedule = RefreshSchedule()
        while not stop.is_set():
            tables = self._tables.now()
            due = schedule.due(tables, time.monotonic())
            if due:
                self._run_tables(due)
                self._following()
            self._observer.mark_alive()
            stop.wait(schedule.pause(tables, time.monotonic(), _LONGEST_PAUSE))

    def _refreshed(self, due: Sequence[GoldRefresh]) -> Iterator[Result]:
        """Yield the results in the order of `due`; start no task for a table that is up to date."""
        found = self._tables.up_to_date(due, self._last)
        rest = iter(
            self._run_all([refresh for refresh, unchanged in zip(due, found, strict=True) if unchanged is None])
        )
        for unchanged in found:
            yield next(rest) if unchanged is None else unchanged

    def _run_tables(self, due: Sequence[GoldRefresh]) -> Sequence[Result]:
        started = time.monotonic()
        results = []
        for refresh, result in zip(due, self._refreshed(due), strict=True):
            results.append(result)
            if isinstance(result, Refreshed):
                self._last[refresh.table] = result
            if isinstance(result, FailedRefresh):
                log.error("gold_table_failed", table=result.table, error=result.reason)
            elif result.unfit:
                # Ingestion dead-letters such amounts (implausible_amount); other writers of silver may not.
                log.warning("gold_values_left_out", table=result.table, source=refresh.source, values=result.unfit)
            elif refresh.held:
                log.warning("gold_table_held_back", table=refresh.table, reason=refresh.held)
            self._observer.table_refreshed(refresh, result)
            # A run over many tables with a long backlog takes minutes.
            self._observer.mark_alive()
        seconds = time.monotonic() - started
        self._observer.run_finished(seconds)
        log.info("gold_refreshed", **summary(results, seconds))
        return results
