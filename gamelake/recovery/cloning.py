"""Clones tables as of a version or a time, without copying data if possible.

A shallow clone is one log entry that references the source's files by absolute URIs. A copy is made inside the store;
on a local disk it consists of hard links. Gold tables are always copied: they are small, and some of their writers
delete replaced files at once. A table is also copied if an unfinished vacuum may still delete files of the clone.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Change Metadata".
"""

import re
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from gamelake.delta.commits import put_entry
from gamelake.delta.listing import games_of, own_tables
from gamelake.delta.log.codec import (
    Action,
    TableMetadata,
    commit_info,
    now_milliseconds,
    protocol_action,
    row_count,
)
from gamelake.delta.log.table_features import TableDemands, TableUse
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.clones import Clone, ClonedTable, CloneError, CloneKind, Clones
from gamelake.model.errors import TransientError
from gamelake.model.naming import Layer, clone_table, game_table
from gamelake.objects.store import Store
from gamelake.objects.vacuum_marks import may_be_vacuumed
from gamelake.recovery.table_history import TableHistory

# Chooses the version of a table.
Moment = Callable[[TableHistory], int]
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table of the clone.

    Attributes:
        table: the clone of one source table.
        adds: the add actions of its files, as in the source's log.
    """

    table: ClonedTable
    adds: Sequence[Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloning:
    """Makes one clone.

    Attributes:
        store: the store of the lakehouse.
        name: name of the clone: a-z, 0-9 and _.
        sources: paths of the tables to clone.
        moment: chooses the version of each table.
        kind: shallow or copy, for tables that don't have to be copied.
    """

    store: Store
    name: str
    sources: Sequence[str]
    moment: Moment
    kind: CloneKind

    def plan(self) -> Clone:
        """Plan the clone; write nothing.

        Raises:
            CloneError: the clone can't be made; the message has the reason.
            RestoreError: a table does not have the version, or did not exist at the time.
        """
        return self._clone(self._planned())

    def make(self) -> Clone:
        """Make the clone.

        Raises:
            CloneError: the clone can't be made, or its name is taken.
            RestoreError: a table does not have the version, or did not exist at the time.
            LeaseHeldError: another process holds the maintenance lease of a table.
            TransientError: a file was deleted while it was copied.
        """
        with ExitStack() as stack:
            # Vacuum and erasures wait until they can see what the clone references.
            for source in sorted(self.sources):
                stack.enter_context(maintenance_lease(self.store, source))
            planned = self._planned()
            clone = self._clone(planned)
            Clones(self.store).begin(clone)
            for each in planned:
                self._write(each)
        return clone

    def _clone(self, planned: Sequence[_Planned]) -> Clone:
        return Clone(name=self.name, made_at=datetime.now(UTC), tables=tuple(each.table for each in planned))

    def _planned(self) -> list[_Planned]:
        if not _NAME.fullmatch(self.name):
            raise CloneError(
                f"'{self.name}' is not a name for a clone: names of SQL tables contain it, so use only a-z, 0-9 and _"
            )
        planned = [self._of(source) for source in self.sources]
        names = [each.table.table for each in planned]
        if len(set(names)) < len(names):
            raise CloneError("two of the tables would have the same name; clone them separately")
        return planned

    def _of(self, source: str) -> _Planned:
        history = TableHistory.read(self.store, source)
        version = self.moment(history)
        erased = [erasure.version for erasure in TableLog.read(self.store, source).erasures]
        if erased and version < erased[-1]:
            raise CloneError(
                f"{source}: version {version} still has rows that an erasure deleted in version {erased[-1]}; clone "
                "that version or a later one"
            )
        adds = list(history.live_at(version).values())
        # Before the check that the files exist: a stalled vacuum may end between an earlier check and this one.
        kind = CloneKind.COPY if self._must_copy(history, adds) else self.kind
        if gone := history.missing(adds):
            raise CloneError(
                f"{source}: {gone} of the files of version {version} are missing: vacuum or an erasure deleted them; "
                "choose a version within the retention"
            )
        cloned = ClonedTable(
            table=clone_table(self.name, source),
            source=source,
            version=version,
            kind=kind,
            files=len(adds),
            rows=sum(map(row_count, adds)),
            bytes=sum(add["size"] for add in adds),
        )
        return _Planned(cloned, adds)

    def _must_copy(self, history: TableHistory, adds: Sequence[Action]) -> bool:
        if history.table.startswith(f"{Layer.GOLD}/"):
            return True
        live = history.live_at(history.newest)
        # After a vacuum that stalled or was killed, deletes of replaced files may still reach the store.
        return any(add["path"] not in live for add in adds) and may_be_vacuumed(self.store, history.table)

    def _write(self, planned: _Planned) -> None:
        cloned = planned.table
        if cloned.kind is CloneKind.COPY:
            adds = planned.adds
            for place in (unquote(add["path"]) for add in adds):
                try:
                    self.store.copy(f"{cloned.source}/{place}", f"{cloned.table}/{place}")
                except FileNotFoundError as error:
                    raise TransientError(
                        f"{cloned.source} was rewritten meanwhile; --drop {self.name}, and try again"
                    ) from error
        else:
            root = quote(self.store.location.child(cloned.source), safe=":/%")
            adds = [{**add, "path": f"{root}/{add['path']}"} for add in planned.adds]
        actions = [*self._head(cloned), *({"add": {**add, "dataChange": True}} for add in adds)]
        if not put_entry(self.store, cloned.table, 0, actions):
            raise CloneError(f"{cloned.table} exists already and does not belong to a clone; delete it first")

    def _head(self, cloned: ClonedTable) -> list[Action]:
        """Return the metadata actions of the clone: those of its source at the version."""
        handle, now = open_table(self.store.location, cloned.source, cloned.version), now_milliseconds()
        TableDemands.of(handle).require(cloned.source, TableUse.REWRITE)  # the clone gets the same protocol
        metadata, protocol = handle.metadata(), handle.protocol()
        described = TableMetadata(
            table_id=str(uuid.uuid4()),
            name=cloned.table.replace("/", "_"),
            description=metadata.description or None,
            schema=handle.schema().to_json(),
            partition_by=metadata.partition_columns,
            properties=metadata.configuration,
            created=now,
        ).action()
        return [
            commit_info(now, "CLONE", {"source": cloned.source, "sourceVersion": str(cloned.version)}),
            protocol_action(protocol.min_reader_version, protocol.min_writer_version),
            described,
        ]


def tables_of(store: Store, game: str) -> list[str]:
    """List a game's tables in silver and gold."""
    # One game's name may be the prefix of another's.
    longer = tuple(f"{Layer.GOLD}/{each}_" for each in games_of(store) if each.startswith(f"{game}_"))
    mine = (game_table(game), f"{Layer.GOLD}/{game}_")
    return [each for each in own_tables(store) if each.startswith(mine) and not each.startswith(longer)]


def cloneable(store: Store) -> list[str]:
    """List the tables that analysts may read and clone: silver and gold."""
    return [each for each in own_tables(store) if each.startswith((f"{Layer.SILVER}/", f"{Layer.GOLD}/"))]


def default_kind(store: Store) -> CloneKind:
    """Return the kind that copies no data: on a local disk a copy is a hard link, which every reader can open."""
    return CloneKind.COPY if store.is_local else CloneKind.SHALLOW
