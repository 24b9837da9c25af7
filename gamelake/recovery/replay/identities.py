"""Identities of the rows that a replay adds, for its notice to the streams (`gamelake.ledger.replay_notices`).

Only events that a stream may still receive again are kept. In a replay of a year these are few.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.delta.file_bounds import bounds_of
from gamelake.delta.tables import open_table
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events
from gamelake.ledger.manifests import EventsFile
from gamelake.ledger.replay_notices import replayed_events_folder
from gamelake.model.arrays import Flags, Ints
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.common_events import identified
from gamelake.streaming.dedup.identity_files import EVENTS_OF_FILES, Section, write_identities

DAY = 86_400
# The partition number of events of Kafka records in the identity files of replays.
EVENTS_OF_RECORDS = 0
# In every partition the streams lag behind the newest record by less than this.
_BEHIND_SECONDS = 3_600
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class ReplayWindows:
    """The times for which streams remember events.

    Attributes:
        of_records: seconds, for events of Kafka records.
        of_files: seconds, for events of files.
    """

    of_records: int = 600
    of_files: int = 14 * DAY

    def remembered(self, files: Iterable[EventsFile]) -> int:
        """Return for how many seconds streams must remember the events of identity files; at least a day.

        A stream that is behind needs the day.
        """
        has_files = any(each.partition == EVENTS_OF_FILES for file in files for each in file.sections)
        return max(self.of_records, self.of_files if has_files else DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPlan:
    """The part of a replay's plan that selects the identities to write.

    Attributes:
        seed: seed of the identities' hash.
        records_since: events of records with this Kafka timestamp or a later one are kept, in seconds since 1970.
        files_since: the same for events of files.
    """

    seed: str
    records_since: int = 0
    files_since: int = 0

    @classmethod
    def of(cls, seed: str, windows: ReplayWindows, location: Location, source: str, version: int) -> "IdentityPlan":
        """Plan from the newest record of the replay's source: from now on, streams receive no much older ones.

        Args:
            seed: seed of the identities' hash.
            windows: the times for which streams remember events.
            location: the lakehouse.
            source: the table of the records.
            version: version of the source.
        """
        actions = pa.table(open_table(location, source, version).get_add_actions(flatten=False))
        newest = pc.max(bounds_of(actions, "kafka_timestamp")[1]).as_py()
        end = 0 if newest is None else int(newest.timestamp()) - _BEHIND_SECONDS
        return cls(seed=seed, records_since=end - windows.of_records, files_since=end - windows.of_files)


@dataclass
class IdentityWriter:
    """Collects the identities of a chunk's rows, separately for Kafka records and files.

    Call `saw` for the records of a chunk and `add` for its rows in any order, then `write`, which starts a new chunk.
    One thread calls them.

    Attributes:
        store: the store of the lakehouse.
        plan: the identities to write.
        number: number of the replay run.
    """

    store: Store
    plan: IdentityPlan
    number: int
    _newest: dict[int, int] = field(default_factory=dict)
    _events: dict[int, list[Events]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare the hash."""
        self._identities = Identities(self.plan.seed)

    def saw(self, partitions: Ints, microseconds: Ints) -> None:
        """Note the newest timestamps of the records that the chunk reads.

        Args:
            partitions: int64, the Kafka partition of each record; negative for records of files.
            microseconds: int64, the Kafka timestamp of each record, in microseconds since 1970.
        """
        for number, of_kind in self._by_kind(partitions):
            if of_kind.any():
                newest = int(microseconds[of_kind].max()) // _SECOND
                self._newest[number] = max(newest, self._newest.get(number, newest))

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add the identities of rows; rows without an event id are skipped.

        Args:
            table: the table of a game.
            rows: rows of this table, or the game's rows in the quarantine, with the column `kafka_partition` (int64)
                and, if the table has it, `event_id` (string).
        """
        events, positions = identified(table, pa.Table.from_batches([rows]), self._identities)
        for number, of_kind in self._by_kind(rows.column("kafka_partition").to_numpy()[positions]):
            if of_kind.any():
                self._events.setdefault(number, []).append(events.take(of_kind))

    @staticmethod
    def _by_kind(partitions: Ints) -> list[tuple[int, Flags]]:
        # Records of files have negative partitions, which Kafka does not use.
        return [(EVENTS_OF_RECORDS, partitions >= 0), (EVENTS_OF_FILES, partitions < 0)]

    def write(self) -> EventsFile | None:
        """Write the identities since the last call, and start a new chunk.

        Returns:
            The identity file; None if all records are too old for a stream to receive them again.
        """
        since = {EVENTS_OF_RECORDS: self.plan.records_since, EVENTS_OF_FILES: self.plan.files_since}
        sections: dict[int, Section] = {
            number: (Events.joined(parts), self._newest[number])
            for number, parts in self._events.items()
            if self._newest[number] >= since[number]
        }
        self._newest, self._events = {}, {}
        folder = replayed_events_folder(self.number)
        return write_identities(self.store, folder, self.number, sections) if sections else None
