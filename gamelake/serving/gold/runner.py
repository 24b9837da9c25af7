"""Runs the refreshes of gold tables: which tables there are, when each is due, and the outcome of a run."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Protocol

import msgspec

from gamelake.model.aggregates import AggregateSpec, Over
from gamelake.model.errors import GamelakeError
from gamelake.model.games import GamesContract
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.gold.definition import AggregateDefinition, define
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.storage.comments import Comments
from gamelake.storage.holds import Hold, holds
from gamelake.storage.listing import games_of
from gamelake.storage.store import Store


def aggregate_comments(contract: GamesContract, spec: AggregateSpec, game: str) -> Comments:
    """The comments of a game's table of an aggregate; what it is grouped by means what it means in silver."""
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
    """A table that could not be brought up to date; the others were not held up."""

    table: str
    reason: str


def attempt(refresh: GoldRefresh) -> Refreshed | FailedRefresh:
    """Bring one table up to date; what Spark maps over the tables of a run."""
    try:
        return refresh()
    except GamelakeError as error:
        return FailedRefresh(table=refresh.table, reason=str(error))
    except Exception as error:  # one game's table must not hold up another's, whatever is wrong with it
        return FailedRefresh(table=refresh.table, reason=f"{type(error).__name__}: {error}")


class GoldTables:
    """The gold tables of a lakehouse, which become more as games come.

    Raises:
        ContractError: an aggregate of the contract is none, or can't be kept up as it says.
    """

    def __init__(self, store: Store, contract: GamesContract) -> None:
        self._store = store
        self._contract = contract
        self._definitions = [define(spec) for spec in contract.aggregates]

    def now(self) -> list[GoldRefresh]:
        """Those of each game that has a silver table, listed or not, and those of all games together."""
        games, held = games_of(self._store), holds(self._store, datetime.now(UTC))
        of_all = [each for each in self._definitions if each.spec.over is Over.ALL_GAMES]
        pairs = [(each, game) for game in games for each in self._definitions if each not in of_all]
        tables = (*pairs, *((each, "") for each in of_all))
        return [self._table(definition, game, held.get(game)) for definition, game in tables]

    def up_to_date(self, due: Sequence[GoldRefresh], last: Mapping[str, Refreshed]) -> list[Refreshed | None]:
        """For each of the tables its unchanged result if nothing has changed since the last one, else None.

        Args:
            due: the tables.
            last: the last results of this process, by table.
        """

        def unchanged(refresh: GoldRefresh) -> Refreshed | None:
            before = last.get(refresh.table)
            try:
                if before is None or not refresh.is_up_to_date(self._store, before):
                    return None
            except Exception:  # its refresh will say what is wrong
                return None
            return msgspec.structs.replace(
                before, outcome=RefreshOutcome.UNCHANGED, rows_written=0, unfit=0, seconds=0.0
            )

        with ThreadPoolExecutor(self._store.at_once) as pool:
            return list(pool.map(unchanged, due))

    def _table(self, definition: AggregateDefinition, game: str, hold: Hold | None) -> GoldRefresh:
        spec = definition.spec
        comments = aggregate_comments(self._contract, spec, game)
        held = f"since {hold.since:%Y-%m-%d %H:%M} by {hold.by}: {hold.why}" if hold else ""
        source, table = spec.source(game), spec.table(game)
        return GoldRefresh(self._store.location, source, table, definition, comments=comments, held=held)


@dataclass(slots=True)
class RefreshSchedule:
    """Knows when each table was refreshed last; times are seconds on one monotonic clock."""

    _refreshed_at: dict[str, float] = field(default_factory=dict)

    def due(self, tables: Sequence[GoldRefresh], now: float) -> list[GoldRefresh]:
        """The tables whose interval is over; they count as refreshed now."""
        due = [each for each in tables if now >= self._next(each)]
        self._refreshed_at |= {each.table: now for each in due}
        return due

    def pause(self, tables: Sequence[GoldRefresh], now: float, longest: timedelta) -> float:
        """Seconds until the next table is due; at most so long, since new games may come."""
        return max(0.0, min([longest.total_seconds(), *(self._next(each) - now for each in tables)]))

    def _next(self, refresh: GoldRefresh) -> float:
        refreshed_at = self._refreshed_at.get(refresh.table)
        return 0.0 if refreshed_at is None else refreshed_at + refresh.definition.spec.interval.total_seconds()


def summary(results: Sequence[Refreshed | FailedRefresh], seconds: float) -> dict[str, object]:
    """A run as fields of its log line: tables, their outcomes, rows written, seconds."""
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

# How often the list of games is read again.
_LONGEST_PAUSE = timedelta(seconds=15)

Result = Refreshed | FailedRefresh
# Attempts every refresh, in any order; what is given is in the order of what was asked, some at a time.
RunAll = Callable[[Sequence[GoldRefresh]], Iterable[Result]]


class GoldObserver(Protocol):
    """Is notified of runs; none of its methods raises."""

    def table_refreshed(self, refresh: GoldRefresh, result: Result) -> None:
        """A run has refreshed a table, or failed to."""

    def run_finished(self, seconds: float) -> None:
        """A run is over; `seconds` is how long it took."""

    def mark_alive(self) -> None:
        """The job is alive, whether a table was due or not."""


class GoldObservers:
    """Notifies several observers, in order."""

    def __init__(self, *observers: GoldObserver) -> None:
        self._observers = observers

    def table_refreshed(self, refresh: GoldRefresh, result: Result) -> None:
        """Notify each observer."""
        for each in self._observers:
            each.table_refreshed(refresh, result)

    def run_finished(self, seconds: float) -> None:
        """Notify each observer."""
        for each in self._observers:
            each.run_finished(seconds)

    def mark_alive(self) -> None:
        """Notify each observer."""
        for each in self._observers:
            each.mark_alive()


class GoldRunner:
    """Refreshes the gold tables of one lakehouse."""

    def __init__(self, tables: GoldTables, run_all: RunAll, observer: GoldObserver) -> None:
        self._tables = tables
        self._run_all = run_all
        self._observer = observer
        self._last: dict[str, Refreshed] = {}

    def once(self) -> Sequence[Result]:
        """Refresh every table now."""
        return self._run_tables(self._tables.now())

    def until(self, stop: Event) -> None:
        """Refresh each table at its own interval until asked to stop, which is checked between runs."""
        schedule = RefreshSchedule()
        while not stop.is_set():
            tables = self._tables.now()
            due = schedule.due(tables, time.monotonic())
            if due:
                self._run_tables(due)
            self._observer.mark_alive()
            stop.wait(schedule.pause(tables, time.monotonic(), _LONGEST_PAUSE))

    def _refreshed(self, due: Sequence[GoldRefresh]) -> Iterator[Result]:
        """The results in order; no task is started for a table that is up to date."""
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
                # Only rows of earlier versions: docs/dead-letters.md, implausible_amount.
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
