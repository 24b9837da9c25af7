"""Makes a clone: tables as they were at a version or a time, to play with, and copies no byte where that can be.

A shallow one is one entry of a log whose files stand in the source's folder, by absolute URIs. A copy is made inside
the store; on a local disk it consists of links. A gold table is always copied: it is small, and some of the programs
that write one delete what they have replaced by themselves.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Change Metadata".
"""

import re
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from gamelake.model.errors import TransientError
from gamelake.model.naming import Layer, clone_table, game_table
from gamelake.recovery.table_history import TableHistory
from gamelake.storage.appends import TableHead
from gamelake.storage.clones import Clone, ClonedTable, CloneError, CloneKind, Clones
from gamelake.storage.delta_log import (
    Action,
    TableMetadata,
    commit_info,
    encode_entry,
    entry_path,
    now_milliseconds,
    protocol_action,
    row_count,
)
from gamelake.storage.listing import games_of, own_tables
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table

# Which version of a table is meant.
Moment = Callable[[TableHistory], int]
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table of the clone, and the files that it is to have, as its source's log names them."""

    told: ClonedTable
    adds: Sequence[Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloning:
    """One clone, before it is made."""

    store: Store
    name: str
    sources: Sequence[str]
    moment: Moment
    kind: CloneKind

    def plan(self) -> Clone:
        """What the clone would be.

        Raises:
            CloneError: it can't be made; says why.
            RestoreError: a table has no such version, or nothing of then.
        """
        return self._clone(self._planned())

    def make(self) -> Clone:
        """Make it.

        Raises:
            CloneError: it can't be made, or there is one of that name.
            RestoreError: a table has no such version, or nothing of then.
            LeaseHeldError: another process does upkeep of a table.
            TransientError: a file went while it was copied.
        """
        with ExitStack() as stack:
            # Vacuum and erasures wait until they can see what the clone names.
            for source in sorted(self.sources):
                stack.enter_context(maintenance_lease(self.store, source))
            planned = self._planned()
            clone = self._clone(planned)
            Clones(self.store).begin(clone)
            for each in planned:
                self._write(each)
        return clone

    def _clone(self, planned: Sequence[_Planned]) -> Clone:
        return Clone(name=self.name, made_at=datetime.now(UTC), tables=tuple(each.told for each in planned))

    def _planned(self) -> list[_Planned]:
        if not _NAME.fullmatch(self.name):
            raise CloneError(f"'{self.name}' is no name for a clone: it becomes part of SQL, so a-z, 0-9 and _ only")
        planned = [self._of(source) for source in self.sources]
        names = [each.told.table for each in planned]
        if len(set(names)) < len(names):
            raise CloneError("two of the tables have the same name; make a clone of each")
        return planned

    def _of(self, source: str) -> _Planned:
        history = TableHistory.read(self.store, source)
        version = self.moment(history)
        erased = [erasure.version for erasure in TableLog.read(self.store, source).erasures]
        if erased and version < erased[-1]:
            raise CloneError(
                f"{source}: version {version} still has rows that an erasure took out in version {erased[-1]}; clone "
                "that version or a later one"
            )
        adds = list(history.live_at(version).values())
        self._require_there(source, version, adds)
        told = ClonedTable(
            table=clone_table(self.name, source),
            source=source,
            version=version,
            kind=CloneKind.COPY if source.startswith(f"{Layer.GOLD}/") else self.kind,
            files=len(adds),
            rows=sum(map(row_count, adds)),
            bytes=sum(add["size"] for add in adds),
        )
        return _Planned(told, adds)

    def _require_there(self, source: str, version: int, adds: Sequence[Action]) -> None:
        there = set(self.store.paths(source))
        if gone := [add["path"] for add in adds if f"{source}/{unquote(add['path'])}" not in there]:
            raise CloneError(
                f"{source}: {len(gone)} of the files of version {version} are gone, as vacuum or an erasure deletes "
                "them; choose a version within the retention"
            )

    def _write(self, planned: _Planned) -> None:
        told = planned.told
        if told.kind is CloneKind.COPY:
            self._copy(planned)
            adds = planned.adds
        else:
            root = quote(self.store.location.child(told.source), safe=":/%")
            adds = [{**add, "path": f"{root}/{add['path']}"} for add in planned.adds]
        entry = encode_entry([*self._head(told), *({"add": {**add, "dataChange": True}} for add in adds)])
        if not self.store.put_new(entry_path(told.table, 0), entry):
            raise CloneError(f"there is a table at {told.table} that is part of no clone; take it away first")

    def _copy(self, planned: _Planned) -> None:
        for add in planned.adds:
            place = unquote(add["path"])
            try:
                self.store.copy(f"{planned.told.source}/{place}", f"{planned.told.table}/{place}")
            except FileNotFoundError as error:
                raise TransientError(
                    f"{planned.told.source} was written anew meanwhile; --drop {self.name}, and try again"
                ) from error

    def _head(self, told: ClonedTable) -> list[Action]:
        """What the table says of itself: what its source said then."""
        handle, now = open_table(self.store.location, told.source, told.version), now_milliseconds()
        TableHead.of(handle, "")  # whether its protocol is one that we write
        metadata, protocol = handle.metadata(), handle.protocol()
        described = TableMetadata(
            table_id=str(uuid.uuid4()),
            name=told.table.replace("/", "_"),
            description=metadata.description or None,
            schema=handle.schema().to_json(),
            partition_by=metadata.partition_columns,
            properties=metadata.configuration,
            created=now,
        ).action()
        return [
            commit_info(now, "CLONE", {"source": told.source, "sourceVersion": str(told.version)}),
            protocol_action(protocol.min_reader_version, protocol.min_writer_version),
            described,
        ]


def tables_of(store: Store, game: str) -> list[str]:
    """All tables of a game: silver's, and gold's."""
    # A game's name may begin with another's.
    longer = tuple(f"{Layer.GOLD}/{each}_" for each in games_of(store) if each.startswith(f"{game}_"))
    mine = (game_table(game), f"{Layer.GOLD}/{game}_")
    return [each for each in own_tables(store) if each.startswith(mine) and not each.startswith(longer)]


def cloneable(store: Store) -> list[str]:
    """The tables that analysts may read, and so play with."""
    return [each for each in own_tables(store) if each.startswith((f"{Layer.SILVER}/", f"{Layer.GOLD}/"))]


def default_kind(store: Store) -> CloneKind:
    """No byte is copied by either: on a local disk a copy is a link, which every reader reads."""
    return CloneKind.COPY if store.location.uri.startswith("file:") else CloneKind.SHALLOW
