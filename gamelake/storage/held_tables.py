"""Tables that a stream holds back: they refuse a batch until an operator changes them, and all other tables go on.

The files of their batches are written, and named by manifests; they wait until the table takes them, in the order of
the batches. An object for each batch and table says so, from before the batch counts as done until the table has it.
So whichever process finds such an object may commit that batch and delete it, at any time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from gamelake.model.errors import ContractError, IncompatibleSchemaError, TableRefusedError
from gamelake.storage.listing import stream_names
from gamelake.storage.manifests import BatchManifest, Manifests, TableFiles
from gamelake.storage.store import Store

# Errors of a commit that concern one table, and last until an operator changes it, its contract or the decision.
REFUSALS = (TableRefusedError, ContractError, IncompatibleSchemaError)


class HeldBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Why a batch waits for a table, and since when (ISO 8601, UTC)."""

    reason: str
    held_at: str


class HeldTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a stream holds back.

    Attributes:
        since: the first batch that waits.
        batches: how many wait.
        reason: why the first one does.
    """

    stream: str
    table: str
    since: int
    batches: int
    reason: str


class WaitingFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a batch adds to a table that is held back; the table may have them already."""

    manifest: BatchManifest
    entry: TableFiles


@dataclass(frozen=True, slots=True)
class HeldTables:
    """The tables that one stream holds back."""

    store: Store
    stream: str

    def all(self) -> dict[str, HeldTable]:
        """The tables with batches that wait."""
        found = {}
        for folder, paths in groupby(self.store.paths(self._folder), lambda path: path.rpartition("/")[0]):
            waiting = list(paths)
            table, content = folder.removeprefix(f"{self._folder}/"), self.store.get(waiting[0])
            # Another process may have committed the batch just now; the others wait still.
            reason = msgspec.json.decode(content, type=HeldBatch).reason if content else "it catches up"
            found[table] = HeldTable(
                stream=self.stream, table=table, since=_batch_of(waiting[0]), batches=len(waiting), reason=reason
            )
        return found

    def hold(self, table: str, batch_id: int, reason: str) -> None:
        """Let a batch wait for a table."""
        held = HeldBatch(reason=reason, held_at=datetime.now(UTC).isoformat())
        self.store.put(self._path(table, batch_id), msgspec.json.encode(held))

    def release(self, table: str, batch_id: int) -> None:
        """A table has a batch that waited for it."""
        self.store.delete(self._path(table, batch_id))

    def waiting(self, table: str) -> Iterator[WaitingFiles]:
        """What waits for a table, in the order of the batches."""
        batches = [_batch_of(path) for path in self.store.paths(f"{self._folder}/{table}")]
        for manifest in Manifests(self.store, self.stream).read_many(batches):
            for entry in manifest.tables:
                if entry.table == table:
                    yield WaitingFiles(manifest=manifest, entry=entry)

    @property
    def _folder(self) -> str:
        return f"_gamelake/streams/{self.stream}/held"

    def _path(self, table: str, batch_id: int) -> str:
        return f"{self._folder}/{table}/{batch_id:012d}.json"


def held_tables(store: Store) -> Iterator[tuple[HeldTables, Mapping[str, HeldTable]]]:
    """The tables that streams hold back, by stream; no stream without such tables."""
    for stream in stream_names(store):
        of_stream = HeldTables(store, stream)
        if records := of_stream.all():
            yield of_stream, records


def waiting_files(store: Store, table: str | None = None) -> Iterator[WaitingFiles]:
    """What waits for tables, of all streams; for one table, or for all."""
    for of_stream, records in held_tables(store):
        for held in records:
            if table is None or held == table:
                yield from of_stream.waiting(held)


def _batch_of(path: str) -> int:
    return int(path.rpartition("/")[2].removesuffix(".json"))
