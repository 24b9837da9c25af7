"""Erases players from the tables of a lakehouse, plans the deletion of old files with their rows, checks the result.

Sources are erased before gold, which is derived from them: a gold job that runs meanwhile would read the rows again.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from gamelake.delta.listing import own_tables
from gamelake.delta.log.codec import live_paths
from gamelake.delta.log.table_log import removal_times
from gamelake.delta.rewrites import revision_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.clones import Clones
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import Layer
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRequest, LeftFiles, PlannedFiles, PurgePlan, Reach
from gamelake.privacy.row_eraser import RowEraser
from gamelake.privacy.scan import decompressed
from gamelake.scans.player_rows import PlayerFilter, PlayerTable, player_tables, rows_in_file

log = event_logger(__name__)

# A running job may bring rows back once or twice; what a stream appends for longer is reported as left.
_PASSES = 5


def plan_purge(
    store: Store,
    run: str,
    tables: Collection[PlayerTable],
    player_filter: PlayerFilter,
    grace: timedelta,
    clean: set[str] | None = None,
) -> PurgePlan:
    """Plan the deletion of removed files that still exist and have rows of the players.

    Not only files of this run: compaction and earlier erasures leave files with the same rows behind too.

    Args:
        store: the lakehouse.
        run: the erasure.
        tables: the tables with rows of players.
        player_filter: the players.
        grace: how long readers may still need a removed file.
        clean: paths that have no such rows, by an earlier plan; gets those that this one reads.
    """
    newest, planned, clean = 0, [], set() if clean is None else clean
    for table in tables:
        removed = removal_times(store, table.name)
        unknown = [path for path in sorted(removed) if f"{table.name}/{path}" not in clean]
        paths = tuple(path for path in unknown if rows_in_file(store, table, path, player_filter))
        clean |= {f"{table.name}/{path}" for path in unknown} - {f"{table.name}/{path}" for path in paths}
        if paths:
            planned.append(PlannedFiles(table=table.name, paths=paths))
            newest = max(newest, *(removed[path] for path in paths))
    not_before = datetime.fromtimestamp(newest / 1000, UTC) + grace
    return PurgePlan(run=run, not_before=not_before, tables=tuple(planned))


@dataclass(slots=True)
class LakeErasure:
    """The part of one erasure that concerns tables; remembers which files have no row of the players.

    Attributes:
        tables: the tables with rows of players, in the order of the last pass.
        clones: names of the dropped clones.
    """

    store: Store
    request: ErasureRequest
    failpoints: Failpoints
    tables: list[PlayerTable] = field(default_factory=list)
    clones: list[str] = field(default_factory=list)
    _erasers: dict[str, RowEraser] = field(default_factory=dict)
    _clean: set[str] = field(default_factory=set)

    @property
    def player_filter(self) -> PlayerFilter:
        """The players."""
        return PlayerFilter(frozenset(self.request.pseudonyms))

    def erase(self) -> None:
        """Delete the rows of the players, until a pass over all tables finds none; drop clones that have some.

        Raises:
            TransientError: new rows arrived, or other processes changed the same files, at every attempt.
            LeaseHeldError: another process holds the revision lease.
        """
        # The lease keeps out replays and restores, which could commit such rows again after this.
        with revision_lease(self.store):
            for _ in range(_PASSES):
                if not self._pass():
                    break
            # After the rows: clones that are made from now on have none of them.
            self._drop_clones()

    def plan(self, grace: timedelta) -> PurgePlan:
        """Plan the deletion of removed files with rows of the players."""
        return plan_purge(self.store, self.request.run, self.tables, self.player_filter, grace, self._clean)

    def left(self) -> tuple[LeftFiles, ...]:
        """Search the content of all tables for the pseudonyms, whatever column holds them.

        Returns:
            The tables with files that still hold one: live files, and removed ones if the erasure reaches files.
        """
        found = [
            LeftFiles(table=table, files=count)
            for table in own_tables(self.store)
            if (count := sum(self._holds_player(f"{table}/{path}") for path in self._searched(table)))
        ]
        for each in found:
            log.error("player_still_found", table=each.table, files=each.files, run=self.request.run)
        return tuple(found)

    def _pass(self) -> bool:
        """Delete the rows that are in the tables now; returns False if there were none."""
        found = False
        self.tables = sorted(player_tables(self.store), key=lambda table: table.name.startswith(f"{Layer.GOLD}/"))
        for number, table in enumerate(self.tables, 1):
            if table.name not in self._erasers:
                self._erasers[table.name] = RowEraser(
                    self.store, table, self.player_filter, self.request.run, self.failpoints
                )
            erased = self._erasers[table.name].erase()
            log.info("rows_erased", table=table.name, number=number, tables=len(self.tables))
            found = found or erased
        return found

    def _drop_clones(self) -> None:
        clones = Clones(self.store)
        for clone in clones.with_rows_of(self.player_filter):
            clones.drop(clone)
            self.clones.append(clone.name)
            log.info("clone_dropped", clone=clone.name, reason="it had rows of an erased player")

    def _searched(self, table: str) -> Iterator[str]:
        yield from live_paths(open_table(self.store.location, table))
        if self.request.reach is Reach.FILES:
            yield from removal_times(self.store, table)

    def _holds_player(self, path: str) -> bool:
        terms, content = self.player_filter.terms, self.store.get(path)
        return terms is not None and any(terms.in_bytes(part) for part in decompressed(content or b""))
