"""The reconciliation's figures for the hops of a lakehouse: sums, and the counts of each batch."""

import time
from collections.abc import Callable, Iterator
from datetime import date, datetime

from gamelake.ledger.coordinates import coordinates_of
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.reconciliation import Reconciliation, reconcile, streams_of
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_of
from gamelake.objects.store import Store
from gamelake.quality.suites.hops import LakehouseTotals
from gamelake.quality.suites.lost_records import BatchCoordinates

# A batch that was decided is in its tables within seconds, or its job was killed.
_ATTEMPTS, _PAUSE_SECONDS = 3, 5.0
_BATCHES_AT_ONCE = 500


def accounts(store: Store, sleep: Callable[[float], None] = time.sleep) -> LakehouseTotals:
    """Reconcile a lakehouse whose streams may be running: read again what does not match."""
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
    """Return what the batches took that were decided since a day, in no order. Statements stand for the others."""
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
    alone = sum(manifest.duplicates.values()) + sum(manifest.judged.dropped.values())
    return BatchCoordinates(coordinates_of(manifest), alone)
