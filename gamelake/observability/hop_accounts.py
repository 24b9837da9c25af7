"""What the reconciliation of a lakehouse gives for its hops: sums, and the counts of each batch."""

import time
from collections.abc import Callable, Iterator
from datetime import date, datetime

from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_of
from gamelake.quality.suites.hops import BatchCoordinates, CoordinateRange, LakehouseTotals
from gamelake.storage.manifests import BatchManifest, Manifests, OffsetRange
from gamelake.storage.reconciliation import Reconciliation, reconcile, streams_of
from gamelake.storage.store import Store
from gamelake.streaming.files.coordinates import MOST_EVENTS, MOST_OBJECTS

# A batch that was decided is in its tables within seconds, or its job was killed.
_ATTEMPTS, _PAUSE_SECONDS = 3, 5.0
_BATCHES_AT_ONCE = 500
_EVENTS_OF_A_NOTIFICATION = MOST_OBJECTS * MOST_EVENTS


def accounts(store: Store, sleep: Callable[[float], None] = time.sleep) -> LakehouseTotals:
    """The reconciliation of a lakehouse whose streams may be running: what does not match is read again."""
    found = _of(reconcile(store))
    for _ in range(_ATTEMPTS - 1):
        if not found.problems and found.records == found.bronze_rows and found.games_rows == found.shared_rows:
            break
        sleep(_PAUSE_SECONDS)
        found = _of(reconcile(store))
    return found


def _of(found: Reconciliation) -> LakehouseTotals:
    rows = {each.table: each.rows + each.erased for each in found.tables}
    counted = (found.dead_letters, found.duplicates, found.quarantined, found.dropped)
    return LakehouseTotals(
        records=found.records,
        settled=found.silver_rows + sum(sum(each.values()) for each in counted),
        bronze_rows=rows.get(BRONZE_EVENTS, 0),
        games_rows=sum(count for table, count in rows.items() if game_of(table)),
        shared_rows=rows.get(SILVER_EVENTS, 0),
        problems=tuple(found.problems),
    )


def batches_since(store: Store, day: date) -> list[BatchCoordinates]:
    """What batches took that were decided on a day or since, in no order; not those that statements stand for."""
    return [_taken(each) for stream in streams_of(store) for each in _manifests_since(store, stream, day)]


def _manifests_since(store: Store, stream: str, day: date) -> Iterator[BatchManifest]:
    manifests = Manifests(store, stream)
    left = manifests.batches()
    while left:
        left, part = left[:-_BATCHES_AT_ONCE], left[-_BATCHES_AT_ONCE:]
        found = list(manifests.read_many(part))
        yield from found
        if found and datetime.fromisoformat(found[0].written_at).date() < day:
            return


def _taken(manifest: BatchManifest) -> BatchCoordinates:
    stretch = _of_files if manifest.files else _of_records
    alone = sum(manifest.duplicates.values()) + sum(manifest.judged.dropped.values())
    return BatchCoordinates(tuple(stretch(each) for each in manifest.offsets), alone)


def _of_records(taken: OffsetRange) -> CoordinateRange:
    return CoordinateRange(taken.partition, taken.first, taken.last)


def _of_files(taken: OffsetRange) -> CoordinateRange:
    """The events of the files that notifications named."""
    first, beyond = taken.first * _EVENTS_OF_A_NOTIFICATION, (taken.last + 1) * _EVENTS_OF_A_NOTIFICATION
    return CoordinateRange(-1 - taken.partition, first, beyond - 1)
