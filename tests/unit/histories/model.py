"""What a lakehouse must have after a history: simple, in memory, and without the platform's code."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TypeAlias

from gamelake.privacy.vault.secrecy import PlayerKey
from tests.unit.histories.events import ARCHERY, GAMES, KART, NEW_GAME, Event, Play, Source, key_of, table_of

SILVER = "silver/events"
# The events of a table, by their numbers.
Rows: TypeAlias = Mapping[int, Event]


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that was ingested; `tables` are those to which its batch added rows."""

    event: Event
    number: int
    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Moment:
    """A time at which no batch was under way.

    Attributes:
        tables: of silver.
        arrivals: how many events had been ingested.
        batches: how many batches each stream had made.
        replays: how many replays and backfills there had been.
    """

    at: datetime
    tables: Mapping[str, Rows]
    arrivals: int
    batches: Mapping[Source, int]
    replays: int


@dataclass
class Model:
    """The events that were acknowledged and not erased, and which of them each table of silver has.

    Attributes:
        games: titles in the contract.
        sent: all events of the history.
        waiting: what was acknowledged, and no batch has ingested for sure; with how it came.
        is_crashed: whether a batch of these may be in some tables.
        left: the numbers of those that no batch may have begun with.
        must_sweep: whether an erased player has such events; by docs/privacy.md their rows come, until they are swept.
        has_leftovers: whether files of a batch that died may be there, which no commit names, until a vacuum.
        arrivals: what was ingested, in its order.
        letters: what became a dead letter, since its game was not in the contract.
        is_contract_faulty: whether it gives the second game's events to the first one.
        misrouted: numbers of events that a faulty contract gave to another game's table, and that no backfill has
            written to the right one.
        tables: of silver.
        known: the numbers of events that are ignored when they come again by Kafka.
        replayed: the numbers of those that a replay or backfill has written, which are ignored however they come again.
        moments: to which tables can be restored.
        replays: how many replays and backfills there were.
        clones: the rows of each clone of a table of silver, by the clone's path.
        erased: pseudonyms.
        lives: how often a player of a game was erased.
        held: days of games that hold their gold back.
    """

    games: set[str] = field(default_factory=lambda: set(GAMES) - {NEW_GAME})
    sent: list[Event] = field(default_factory=list)
    waiting: list[tuple[Source, Event]] = field(default_factory=list)
    is_crashed: bool = False
    left: set[int] = field(default_factory=set)
    must_sweep: bool = False
    has_leftovers: bool = False
    arrivals: list[Arrival] = field(default_factory=list)
    arrived: int = 0
    letters: list[Event] = field(default_factory=list)
    is_contract_faulty: bool = False
    misrouted: set[int] = field(default_factory=set)
    tables: dict[str, dict[int, Event]] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    replayed: set[int] = field(default_factory=set)
    moments: list[Moment] = field(default_factory=list)
    replays: int = 0
    clones: dict[str, Rows] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    lives: dict[tuple[str, int], int] = field(default_factory=dict)
    held: set[tuple[str, int]] = field(default_factory=set)

    def key_of(self, game: str, player: int) -> PlayerKey:
        """The present key of a player of a game."""
        return key_of(game, player, self.lives.get((game, player), 0))

    def new(self, plays: Iterable[Play]) -> list[Event]:
        """The events of plays, which no one has sent yet."""
        first = len(self.sent)
        for play in plays:
            gamer = None if play.player is None else self.key_of(play.game, play.player).pseudonym
            self.sent.append(Event(play, len(self.sent), gamer))
        return self.sent[first:]

    def again(self, numbers: Iterable[int]) -> list[Event]:
        """Events that were sent before, chosen by any numbers; one without an id counts as another one."""
        those = [event for event in self.sent if event.gamer not in self.erased and event.number not in self.misrouted]
        chosen = [those[number % len(those)] for number in numbers] if those else []
        return [event if event.id else self.new([event.play])[0] for event in chosen]

    def acknowledge(self, source: Source, events: Iterable[Event]) -> None:
        """Events were sent."""
        self.waiting += [(source, event) for event in events]

    def ingest(self) -> None:
        """All that waits was ingested; the stream of Kafka goes first."""
        for source in Source:
            self._take(source, [event for way, event in self.waiting if way is source])
        self.waiting, self.is_crashed, self.must_sweep = [], False, False
        self.left.clear()

    def _take(self, source: Source, events: Collection[Event]) -> None:
        written: set[str] = set()
        for event in events:
            known = self.known if source is Source.KAFKA else self.tables.get(SILVER, {})
            is_known = event.number in known or event.number in self.replayed
            if event.play.game not in self.games:
                self.letters.append(event)
            elif not is_known:
                self.known.add(event.number)
                written |= self._add([event])
        for event in events:
            self.arrivals.append(Arrival(event, self.arrived, frozenset(written)))
            self.arrived += 1

    def _add(self, events: Iterable[Event], targets: Collection[str] = ()) -> set[str]:
        """Add rows of events of listed games to the tables that may get some, or to all if none is named."""
        written = set()
        for event in events:
            for table in (SILVER, self._route(event)):
                rows = self.tables.get(table, {})
                if event.play.game in self.games and (not targets or table in targets):
                    self.tables[table] = rows | {event.number: event}
                    written |= {table} if event.number not in rows else set()
        return written

    def _replay(self, events: Iterable[Event], targets: Collection[str] = ()) -> None:
        """Add the rows that tables lack."""
        added = {event.number for event in events if self._add([event], targets)}
        self.replayed |= added
        self.misrouted -= added
        self.replays += 1

    def _route(self, event: Event) -> str:
        is_misrouted = self.is_contract_faulty and event.play.game == ARCHERY
        return table_of(KART if is_misrouted else event.play.game)

    def backfill(self, arrivals: Iterable[Arrival], targets: Collection[str]) -> None:
        """What had been ingested is in the tables."""
        self._replay((each.event for each in arrivals), targets)

    def replay_dead_letters(self) -> None:
        """Dead letters of games that are listed by now have become rows."""
        self._replay(self.letters)
        self.letters = [event for event in self.letters if event.play.game not in self.games]

    def mark(self, at: datetime, batches: Mapping[Source, int]) -> None:
        """Tables can be restored to this time."""
        tables = {table: dict(rows) for table, rows in self.tables.items()}
        self.moments.append(Moment(at, tables, self.arrived, batches, self.replays))

    def batches(self) -> list[tuple[Moment, Source, frozenset[str]]]:
        """The batches that alone came after a moment: the moment, the stream, and the tables with their rows."""
        found = []
        for before, after in pairwise(self.moments):
            new = {source: after.batches[source] - before.batches[source] for source in Source}
            rows = [each for each in self.arrivals if before.arrivals <= each.number < after.arrivals]
            if sum(new.values()) == 1 and before.replays == after.replays and rows and rows[0].tables:
                found.append((before, max(new, key=lambda source: new[source]), rows[0].tables))
        return found

    def restore(self, moment: Moment, tables: Collection[str]) -> None:
        """Tables are as they were; rows that were erased since are erased again."""
        for table in tables:
            self._restore(table, moment.tables.get(table, {}))

    def restore_game(self, moment: Moment, game: str) -> None:
        """A game is as it was; the rows of others in the table of all games stay."""
        table = table_of(game)
        now, then = self.tables[SILVER], moment.tables.get(SILVER, {})
        others = {number: event for number, event in now.items() if event.play.game != game}
        ours = {number: event for number, event in then.items() if event.play.game == game}
        self._restore(table, moment.tables.get(table, {}))
        self._restore(SILVER, others | ours)

    def _restore(self, table: str, rows: Rows) -> None:
        self.tables[table] = {number: event for number, event in rows.items() if event.gamer not in self.erased}

    def replay_since(self, moment: Moment, tables: Collection[str]) -> None:
        """The batches since a moment that wrote to tables were decoded again."""
        since = (each for each in self.arrivals if each.number >= moment.arrivals and each.tables & set(tables))
        self._replay([each.event for each in since], tables)

    def erase(self, game: str, player: int) -> None:
        """A player is erased everywhere."""
        gamer = self.key_of(game, player).pseudonym
        self.erased.add(gamer)
        self.lives[game, player] = self.lives.get((game, player), 0) + 1
        self.must_sweep |= any(event.gamer == gamer and event.number in self.left for _, event in self.waiting)
        self.waiting = [(source, event) for source, event in self.waiting if event.gamer != gamer]
        self.arrivals = [each for each in self.arrivals if each.event.gamer != gamer]
        self.letters = [event for event in self.letters if event.gamer != gamer]
        for table, rows in self.tables.items():
            self._restore(table, rows)
        with_player = [name for name, rows in self.clones.items() if gamer in {event.gamer for event in rows.values()}]
        for name in with_player:
            del self.clones[name]
