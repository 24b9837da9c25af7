"""Replay manifests: what a replay does with each of its records, decided before any table is committed."""

from collections.abc import Mapping

import msgspec

from gamelake.storage.appends import BatchTransaction
from gamelake.storage.delta_log import REPLAY
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Store

_FOLDER = "_gamelake/replays"


class ReplayManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of a replay.

    Attributes:
        number: greater than that of every replay before.
        source: the table that its records were read from.
        written_at: ISO 8601, UTC.
        records: how many records it read.
        settled: dead letters or quarantined rows that need no further replay.
        still_dead: records that still can't become rows, by reason.
        tables: the files that each table gets; empty if the replay was given up.
    """

    number: int
    source: str = ""
    written_at: str = ""
    records: int = 0
    settled: int = 0
    still_dead: Mapping[str, int] = {}
    tables: tuple[TableFiles, ...] = ()

    @property
    def transaction(self) -> BatchTransaction:
        """The Delta transaction under which each table takes the replay, once."""
        rows = sum(entry.rows for entry in self.tables)
        return BatchTransaction(f"{REPLAY}{self.number}", 0, {"replayedRecords": self.records, "replayedRows": rows})


class ReplayManifests:
    """The manifests of all replays, by their numbers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def settle(self, manifest: ReplayManifest) -> bool:
        """Write a manifest; gives False if another replay has this number."""
        return self._store.put_new(_path(manifest.number, "json"), msgspec.json.encode(manifest))

    def replace(self, manifest: ReplayManifest) -> None:
        """Replace the manifest of a replay that a table can't take; only `gamelake.recovery.stuck_decisions` may."""
        self._store.put(_path(manifest.number, "json"), msgspec.json.encode(manifest))

    def all(self) -> list[ReplayManifest]:
        """All replay manifests, in order."""
        paths = [path for path in self._store.paths(_FOLDER) if path.endswith(".json")]
        return [msgspec.json.decode(self._store.get(path) or b"", type=ReplayManifest) for path in paths]

    def unfinished(self) -> list[ReplayManifest]:
        """The replays whose commits may not all be done."""
        paths = set(self._store.paths(_FOLDER))
        return [each for each in self.all() if _path(each.number, "done") not in paths]

    def is_done(self, manifest: ReplayManifest) -> None:
        """Record that every table has the replay."""
        self._store.put(_path(manifest.number, "done"), b"")


def _path(number: int, kind: str) -> str:
    return f"{_FOLDER}/{number:012d}.{kind}"
