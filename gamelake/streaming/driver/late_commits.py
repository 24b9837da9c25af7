"""Handles batches that are committed long after they were decided: players may have been erased in between.

An erasure deletes the rows that a table has at that time. If a waiting batch is committed later, it adds rows of the
same players. So the process that commits the batch deletes these rows again, before the batch counts as committed.
"""

from datetime import datetime, timedelta

from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import StoreError, TransientError
from gamelake.model.logs import event_logger
from gamelake.objects.leases import LeaseTiming
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords, Reach
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, player_table, rows_in_file

# A daily run finishes an erasure that was killed.
_LONGEST_ERASURE = timedelta(days=7)

# The other tables of a stream don't wait for maintenance of this one.
_IMPATIENT = LeaseTiming(wait=0)
# Reasons why rows can't be deleted yet: the table is under maintenance, or has a feature that we can't write.
ERASURE_WAITS = (TransientError, StoreError)

log = event_logger(__name__)


def erase_again(store: Store, manifest: BatchManifest, entry: TableFiles) -> None:
    """Delete the rows that a batch added to a table for players who were erased since the batch was decided.

    Args:
        store: the lakehouse.
        manifest: of the batch.
        entry: the batch's files of the table, which are committed.

    Raises:
        TransientError: another process holds the maintenance lease of the table, or other writers were faster.
        StoreError: the table has a feature that we can't write.
    """
    since = datetime.fromisoformat(manifest.written_at) - _LONGEST_ERASURE
    requests = [each for each in ErasureRecords(store).requested_after(since) if each.reach is not Reach.VAULT]
    table = player_table(store, entry.table) if requests else None
    if table is None:
        return
    for request in requests:
        players = PlayerFilter(frozenset(request.pseudonyms))
        rows = sum(rows_in_file(store, table, file.path, players) for file in entry.files)
        if rows:
            # The whole table: another process may have compacted the files since they were committed.
            RowEraser(store, table, players, request.run, timing=_IMPATIENT).erase()
            log.info("rows_erased_again", table=entry.table, batch=manifest.batch_id, rows=rows)
