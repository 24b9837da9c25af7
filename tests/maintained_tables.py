"""A table after a long life (appends, packing, an erasure, a restore, vacuum, a clone), and the rows it must have."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.naming import SILVER_EVENTS
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.cloning import Cloning
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.storage.clones import CloneKind
from gamelake.storage.player_rows import PlayerFilter, PlayerTable
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Location
from gamelake.storage.tables import open_table
from tests.silver_events import Event, Silver, some_events

COLUMNS = ("event_time", "game_name", "event_name", "gamer_id", "platform", "amount")
CLONE = "clones/kept_events"
Row = tuple[str | float | None, ...]


@dataclass
class MaintainedTable(Silver):
    """silver/events of a lakehouse anywhere; `cloned` are the rows of its clone."""

    place: Location = field(kw_only=True)
    cloned: list[Event] = field(default_factory=list)

    @property
    def location(self) -> Location:
        """Where the lakehouse is."""
        return self.place

    def live(self) -> None:
        """Some seventy versions, a checkpoint of the log among them."""
        self.batches(30)
        self.pack(target_bytes=20_000)
        self.erase("g3")
        kept = list(self.events)
        self.batches(12)
        self.set_back(kept)
        self.batches(12)
        self.clone()
        self.pack(target_bytes=2**20)
        self.vacuum()
        self.batches(6)

    def batches(self, count: int) -> None:
        """So many batches, each with files for three days."""
        for _ in range(count):
            self.append(some_events(20, seed=self.commits))

    def pack(self, target_bytes: int) -> None:
        """Compaction by the tasks' own code."""
        rule = CompactionRule(target_bytes=target_bytes, hot_files=1, today=date(2026, 11, 22))
        assert TableCompaction(self.location, SILVER_EVENTS, rule, ("game_name", "event_time"))().files_before > 1

    def erase(self, player: str) -> None:
        """The rows of one player go."""
        RowEraser(
            self.store, PlayerTable(SILVER_EVENTS, "gamer_id"), PlayerFilter(frozenset([player])), "run-1"
        ).erase()
        self.events = [event for event in self.events if event.gamer != player]

    def set_back(self, events: list[Event]) -> None:
        """To the version before the batches that came last."""
        history = TableHistory.read(self.store, SILVER_EVENTS)
        with maintenance_lease(self.store, SILVER_EVENTS) as lease:
            TableRestore(self.store, history, len(history.commits) - 1 - 12).commit(lease)
        self.events = events

    def clone(self) -> None:
        """One that names this table's files."""
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
        """All that the newest version lacks goes, but what the clone names."""
        vacuum = TableVacuum(self.store, SILVER_EVENTS, datetime.now(UTC))
        done = vacuum.delete(vacuum.unreferenced())
        assert done.replaced_files > 0
        assert done.kept_for_clones > 0


def new_maintained_table(place: Location) -> MaintainedTable:
    """One that has lived."""
    table = MaintainedTable(Path(), place=place)
    table.live()
    return table


def rows(events: list[Event]) -> Counter[Row]:
    """Events as any engine has their rows: times as texts."""
    return Counter(
        (f"{each.at:%Y-%m-%d %H:%M:%S}", each.game, each.name, each.gamer, each.platform, each.amount)
        for each in events
    )


def as_read(found: list[tuple[Any, ...]]) -> Counter[Row]:
    """An engine's rows, whatever its times are."""
    return Counter((f"{row[0]:%Y-%m-%d %H:%M:%S}", *row[1:]) for row in found)
