"""Tables that a stream holds back: they refuse a batch until an operator changes them, and all other tables continue.

The files of their batches are written and named by manifests. They wait until the table accepts them, in the order of
the batches. Each waiting batch of a table has an object, which is written before the batch counts as done and deleted
once the table has the batch. So any process that finds such an object may commit that batch and delete the object.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from gamelake.delta.comments import CommentsOf, no_comments
from gamelake.delta.listing import stream_names
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.errors import ContractError, IncompatibleSchemaError, TableRefusedError
from gamelake.objects.records import Records
from gamelake.objects.store import Location, Store

# Errors of a commit that concern one table, and last until an operator changes it, its contract or the decision.
REFUSALS = (TableRefusedError, ContractError, IncompatibleSchemaError)


class HeldBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a batch that waits for a table.

    Attributes:
        reason: the error of the commit, for operators.
        held_at: when the batch began to wait (ISO 8601, UTC).
    """

    reason: str
    held_at: str


class HeldTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a stream holds back.

    Attributes:
        stream: the stream's name.
        table: the table's path.
        since: the id of the first batch that waits.
        batches: the number of batches that wait.
        reason: why the first one waits, for operators.
    """

    stream: str
    table: str
    since: int
    batches: int
    reason: str


class WaitingFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a batch adds to a table that is held back; the table may have them already.

    Attributes:
        manifest: of the batch.
        entry: the files, one of `manifest.tables`.
    """

    manifest: BatchManifest
    entry: TableFiles


@dataclass(frozen=True, slots=True)
class HeldTables:
    """The tables that one stream holds back.

    Several processes may call all methods at the same time. The order for one batch is: `hold`, then a commit of the
    batch to the table, then `release`. If the process dies between, the next one commits the batch again, which Delta's
    transaction version makes a no-op.

    Attributes:
        store: the lakehouse.
        stream: the stream's name.
    """

    store: Store
    stream: str

    def all(self) -> dict[str, HeldTable]:
        """Return the tables with batches that wait, by path."""
        found = {}
        places = (path.removeprefix(f"{self._folder}/") for path in self.store.paths(self._folder))
        for table, of_table in groupby(places, lambda place: place.rpartition("/")[0]):
            waiting = list(of_table)
            name = waiting[0].rpartition("/")[2].removesuffix(".json")
            first = self._records(table).read(name)
            found[table] = HeldTable(
                stream=self.stream,
                table=table,
                since=int(name),
                batches=len(waiting),
                # Another process may have committed the first batch just now. The others still wait.
                reason=first.reason if first else "it catches up",
            )
        return found

    def first(self, table: str) -> int | None:
        """Return the id of the first batch that waits for a table, None if no batch waits."""
        return min(map(int, self._records(table).names()), default=None)

    def hold(self, table: str, batch_id: int, reason: str) -> None:
        """Record that a batch waits for a table; call this before the batch counts as done."""
        held = HeldBatch(reason=reason, held_at=datetime.now(UTC).isoformat())
        self._records(table).put(_name(batch_id), held)

    def release(self, table: str, batch_id: int) -> None:
        """Record that a table has the batch that waited for it."""
        self._records(table).delete(_name(batch_id))

    def waiting(self, table: str) -> Iterator[WaitingFiles]:
        """Yield the files that wait for a table, in the order of the batches."""
        batches = [int(name) for name in self._records(table).names()]
        for manifest in Manifests(self.store, self.stream).read_many(batches):
            for entry in manifest.tables:
                if entry.table == table:
                    yield WaitingFiles(manifest=manifest, entry=entry)

    @property
    def _folder(self) -> str:
        return f"_gamelake/streams/{self.stream}/held"

    def _records(self, table: str) -> Records[HeldBatch]:
        return Records(self.store, f"{self._folder}/{table}", HeldBatch)


def stream_tables(location: Location, comments: CommentsOf = no_comments) -> DeltaTables:
    """Open the tables of a lakehouse to append batches of streams, in the order of the batches."""
    return DeltaTables(location, comments, lambda store, stream, table: HeldTables(store, stream).first(table))


def held_tables(store: Store) -> Iterator[tuple[HeldTables, Mapping[str, HeldTable]]]:
    """Yield each stream that holds tables back, with these tables by path."""
    for stream in stream_names(store):
        of_stream = HeldTables(store, stream)
        if records := of_stream.all():
            yield of_stream, records


def waiting_files(store: Store, table: str | None = None) -> Iterator[WaitingFiles]:
    """Yield the files of all streams that wait for a table, or for any table if `table` is None."""
    for of_stream, records in held_tables(store):
        for held in records:
            if table is None or held == table:
                yield from of_stream.waiting(held)


def _name(batch_id: int) -> str:
    return f"{batch_id:012d}"
