"""Replay manifests: the decision about each record of a replay, made before any table is committed."""

from collections.abc import Collection, Mapping

import msgspec

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.codec import REPLAY
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import EventsFile
from gamelake.objects.records import Records
from gamelake.objects.store import Store

_FOLDER = "_gamelake/replays"


class ReplayManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of a replay.

    Attributes:
        number: greater than that of every earlier replay.
        source: the table that its records were read from.
        written_at: ISO 8601, UTC.
        records: the number of records that it read.
        settled: the number of dead letters or quarantined rows that need no further replay.
        still_dead: the number of records that still can't become rows, by reason.
        tables: the files that it adds to each table; empty if the replay was abandoned.
        versions: the version of each table that the replay has compared its rows with.
        events: files with the identities of its rows in silver and the quarantine.
        remembered: how long streams must know these events, in seconds.
    """

    number: int
    source: str = ""
    written_at: str = ""
    records: int = 0
    settled: int = 0
    still_dead: Mapping[str, int] = {}
    tables: tuple[TableFiles, ...] = ()
    versions: Mapping[str, int] = {}
    events: tuple[EventsFile, ...] = ()
    remembered: int = 0

    @property
    def transaction(self) -> BatchTransaction:
        """The Delta transaction with which each table commits the replay, once."""
        rows = sum(entry.rows for entry in self.tables)
        return BatchTransaction(f"{REPLAY}{self.number}", 0, {"replayedRecords": self.records, "replayedRows": rows})


class ReplayManifests:
    """The manifests of all replays, by number.

    The order for one replay is: `settle`, the commits to the tables, then `mark_done`. If the process dies between,
    `unfinished` returns the replay, and its commits are repeated.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records = Records(store, _FOLDER, ReplayManifest)

    def settle(self, manifest: ReplayManifest) -> bool:
        """Write a manifest; return False if another replay has this number."""
        return self._records.add(_name(manifest.number), manifest)

    def replace(self, manifest: ReplayManifest) -> None:
        """Replace the manifest of a replay, before it is committed to the tables that change in it.

        Only `gamelake.recovery.stuck_decisions` and `gamelake.recovery.replay.runs` may call this, with the revision
        lease.
        """
        self._records.put(_name(manifest.number), manifest)

    def all(self) -> list[ReplayManifest]:
        """Read all replay manifests, in the order of their numbers."""
        return self._records.all()

    def unfinished(self) -> list[ReplayManifest]:
        """Return the replays whose commits may be incomplete, in the order of their numbers."""
        paths = set(self._store.paths(_FOLDER))
        return [each for each in self.all() if _done(each.number) not in paths]

    def unfinished_among(self, numbers: Collection[int]) -> list[ReplayManifest]:
        """Return those of some decided replays whose commits may be incomplete, in the order of `numbers`."""
        undone = set(self._store.missing([_done(number) for number in numbers]))
        return list(self._records.read_many(_name(number) for number in numbers if _done(number) in undone))

    def mark_done(self, manifest: ReplayManifest) -> None:
        """Record that every table has the replay."""
        self._store.put(_done(manifest.number), b"")


def _name(number: int) -> str:
    return f"{number:012d}"


def _done(number: int) -> str:
    return f"{_FOLDER}/{_name(number)}.done"
