"""Which gold tables there are, when each is due, and what became of them in a round."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.contracts.aggregates import Over
from gamelake.contracts.games import GamesContract
from gamelake.errors import GamelakeError
from gamelake.gold.comments import aggregate_comments
from gamelake.gold.definition import Definition, define
from gamelake.gold.refresh import GoldRefresh, Refreshed
from gamelake.lake.holds import Hold, holds
from gamelake.lake.listing import games_of
from gamelake.lake.store import Store


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A table that could not be brought up to date; the others were not held up."""

    table: str
    reason: str


def attempt(refresh: GoldRefresh) -> Refreshed | Failed:
    """Bring one table up to date; what Spark maps over the tables of a round."""
    try:
        return refresh()
    except GamelakeError as error:
        return Failed(table=refresh.table, reason=str(error))
    except Exception as error:  # one game's table must not hold up another's, whatever is wrong with it
        return Failed(table=refresh.table, reason=f"{type(error).__name__}: {error}")


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

    def _table(self, definition: Definition, game: str, hold: Hold | None) -> GoldRefresh:
        spec = definition.spec
        comments = aggregate_comments(self._contract, spec, game)
        held = f"since {hold.since:%Y-%m-%d %H:%M} by {hold.by}: {hold.why}" if hold else ""
        source, table = spec.source(game), spec.table(game)
        return GoldRefresh(self._store.location, source, table, definition, comments=comments, held=held)


@dataclass(slots=True)
class Schedule:
    """Knows when each table was looked at last; times are seconds on one steady clock."""

    _looked_at: dict[str, float] = field(default_factory=dict)

    def due(self, tables: Sequence[GoldRefresh], now: float) -> list[GoldRefresh]:
        """The tables whose interval is over; they count as looked at now."""
        due = [each for each in tables if now >= self._next(each)]
        self._looked_at |= {each.table: now for each in due}
        return due

    def pause(self, tables: Sequence[GoldRefresh], now: float, longest: timedelta) -> float:
        """Seconds until the next table is due; at most so long, since new games may come."""
        return max(0.0, min([longest.total_seconds(), *(self._next(each) - now for each in tables)]))

    def _next(self, refresh: GoldRefresh) -> float:
        looked_at = self._looked_at.get(refresh.table)
        return 0.0 if looked_at is None else looked_at + refresh.definition.spec.interval.total_seconds()


def summary(results: Sequence[Refreshed | Failed], seconds: float) -> str:
    """A round in a line."""
    done = [each for each in results if isinstance(each, Refreshed)]
    outcomes = Counter(each.outcome.value for each in done)
    outcomes["failed"] = len(results) - len(done)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()) if count)
    rows = sum(each.rows_written for each in done)
    return f"{len(results)} gold tables in {seconds:.1f} s: {counts}; {rows:,} rows written"
