"""Looks up batches that tables' logs name: the stream that decided a batch, and the coordinates of its records."""

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import or_

import pyarrow.compute as pc

from gamelake.delta.appends import columns_of
from gamelake.delta.log.codec import REPLAY, FileEntry
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.coordinates import CoordinateRange, coordinates_of, joined
from gamelake.ledger.generations import Generations
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import streams_of
from gamelake.ledger.replay_manifests import ReplayManifests
from gamelake.model.choices import allowed
from gamelake.objects.store import Store
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.scans.datasets import dataset

_BACKFILL = "Nothing was changed; restore without --replay, then run jobs/backfill.py for the tables"


class StreamBatches:
    """The batches of all streams that a store has now.

    Attributes:
        applications: the name of the stream of each application id.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.applications = {each.app_id: name for name in streams_of(store) for each in Generations(store, name).all()}

    def streams(self, transactions: Collection[str]) -> tuple[str, ...]:
        """Return the names of the streams that wrote these batches, sorted; batches are named `application/batch`."""
        applications = {transaction.rpartition("/")[0] for transaction in transactions}
        return tuple(sorted({self.applications[each] for each in applications if each in self.applications}))

    def applications_with(self, histories: Sequence[TableHistory], batch: int, stream: str | None) -> frozenset[str]:
        """Return the application ids of the stream whose batch is meant.

        Args:
            histories: the histories of the tables to restore.
            batch: the batch id, which several streams may have.
            stream: the stream that the operator chose; None for the only one that has reached the batch.

        Raises:
            RestoreError: the stream does not exist, or none was chosen and several have reached this batch.
        """
        writers = self._writers(histories, batch) if stream is None else [stream]
        known = sorted(set(self.applications.values()))
        if len(writers) > 1:
            raise RestoreError(
                f"batch {batch} may be one of {' or of '.join(writers)}: choose the stream with --stream. "
                "Nothing was changed"
            )
        if stream is not None and stream not in known:
            raise RestoreError(f"'{stream}' is not a stream; the streams are: {allowed(known, stream)}")
        return frozenset(app for app, name in self.applications.items() if name in writers)

    def _writers(self, histories: Sequence[TableHistory], batch: int) -> list[str]:
        """Find the streams that have written this batch, or a later one, to any of the tables."""
        written = (each.transaction.rpartition("/") for history in histories for each in history.commits)
        found = {
            self.applications[app] for app, _, number in written if app in self.applications and int(number) >= batch
        }
        return sorted(found)

    def coordinates(self, transactions: Collection[str], tables: Collection[str]) -> tuple[CoordinateRange, ...]:
        """Return the coordinates of all records of batches, including records without a row in the tables.

        Args:
            transactions: batches and replays, named `application/batch` as in the tables' logs.
            tables: only the replays' rows in these tables are checked.

        Raises:
            RestoreError: log cleanup has deleted a manifest, or a replay wrote rows of other batches.
        """
        found = joined(taken for each in sorted(transactions) for taken in self._of_batch(each))
        replays = {each.number: each for each in ReplayManifests(self._store).all()}
        numbers = (each.removeprefix(REPLAY).partition("/")[0] for each in transactions if each.startswith(REPLAY))
        for number in sorted(map(int, numbers)):
            entries = [entry for entry in replays[number].tables if entry.table in tables]
            if not all(self._are_among(entry, found) for entry in entries):
                raise RestoreError(f"replay {number} wrote rows of batches from before that version. {_BACKFILL}")
        return found

    def _of_batch(self, transaction: str) -> Iterator[CoordinateRange]:
        application, _, batch = transaction.rpartition("/")
        if (stream := self.applications.get(application)) is None:
            return
        manifest = Manifests(self._store, stream).read(int(batch))
        if manifest is None or manifest.app_id != application:
            raise RestoreError(f"the manifest of batch {batch} of {stream} was deleted. {_BACKFILL}")
        yield from coordinates_of(manifest)

    def _are_among(self, entry: TableFiles, ranges: Sequence[CoordinateRange]) -> bool:
        """Return True if all rows of a replay are within the coordinate ranges; False if files are missing."""
        if self._store.missing([f"{entry.table}/{file.path}" for file in entry.files]):
            return False
        partition, offset = pc.field("kafka_partition"), pc.field("kafka_offset")
        within = [(partition == each.partition) & (offset >= each.first) & (offset <= each.last) for each in ranges]
        rows = dataset(self._store.location, entry.table, columns_of(entry), map(FileEntry.of, entry.files))
        return bool(within) and rows.count_rows(filter=reduce(or_, within)) == entry.rows
