"""A table after appends, compactions, an erasure, a restore, vacuum and a clone, with the rows that it must have."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.clones import CloneKind
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.cloning import Cloning
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.scans.player_rows import PlayerFilter, PlayerTable
from tests.support.silver_events import Event, Silver, some_events

COLUMNS = ("event_time", "game_name", "event_name", "gamer_id", "platform", "amount")
CLONE = "clones/kept_events"
Row = tuple[str | float | None, ...]


@dataclass
class MaintainedSilver(Silver):
    """silver/events of a lakehouse at any location; `cloned` are the rows of its clone."""

    place: Location = field(kw_only=True)
    cloned: list[Event] = field(default_factory=list)

    @property
    def location(self) -> Location:
        return self.place

    def run_history(self) -> None:
        """Commit some seventy versions, with a checkpoint of the log."""
        self.batches(30)
        self.compact(target_bytes=20_000)
        self.erase("g3")
        kept = list(self.events)
        self.batches(12)
        self.restore(kept)
        self.batches(12)
        self.clone()
        self.compact(target_bytes=2**20)
        self.vacuum()
        self.batches(6)

    def batches(self, count: int) -> None:
        """Append batches, each with files for three days."""
        for _ in range(count):
            self.append(some_events(20, seed=self.commits))

    def compact(self, target_bytes: int) -> None:
        """Compact as the tasks do, without Spark."""
        rule = CompactionRule(target_bytes=target_bytes, hot_files=1, today=date(2026, 11, 22))
        assert TableCompaction(self.location, SILVER_EVENTS, rule, ("game_name", "event_time"))().files_before > 1

    def erase(self, player: str) -> None:
        RowEraser(
            self.store, PlayerTable(SILVER_EVENTS, "gamer_id"), PlayerFilter(frozenset([player])), "run-1"
        ).erase()
        self.events = [event for event in self.events if event.gamer != player]

    def restore(self, events: list[Event]) -> None:
        """Restore the version before the last twelve batches."""
        history = TableHistory.read(self.store, SILVER_EVENTS)
        with maintenance_lease(self.store, SILVER_EVENTS) as lease:
            TableRestore(history, len(history.commits) - 1 - 12).commit(lease)
        self.events = events

    def clone(self) -> None:
        """Make a shallow clone of the newest version."""
        newest = open_table(self.location, SILVER_EVENTS).version()
        Cloning(
            store=self.store,
            name="kept",
            sources=[SILVER_EVENTS],
            moment=lambda history: history.at_version(newest),
            kind=CloneKind.SHALLOW,
        ).make()
        self.cloned = list(self.events)

    def vacuum(self) -> None:
        """Vacuum everything but the newest version and what the clone names."""
        vacuum = TableVacuum(self.store, SILVER_EVENTS, datetime.now(UTC))
        done = vacuum.run()
        assert done.replaced_files > 0
        assert done.kept_for_clones > 0


def new_maintained_table(place: Location) -> MaintainedSilver:
    """A table with its whole history."""
    table = MaintainedSilver(Path(), place=place)
    table.run_history()
    return table


def rows(events: list[Event]) -> Counter[Row]:
    """Events as rows that engines can be compared by: times as strings."""
    return Counter(
        (f"{each.at:%Y-%m-%d %H:%M:%S}", each.game, each.name, each.gamer, each.platform, each.amount)
        for each in events
    )


def as_read(found: list[tuple[Any, ...]]) -> Counter[Row]:
    """An engine's rows in the form of `rows`."""
    return Counter((f"{row[0]:%Y-%m-%d %H:%M:%S}", *row[1:]) for row in found)
