"""A view of the tables in which no batch is half: what is yet to be committed must not be taken for missing."""

import time

from gamelake.errors import TransientError
from gamelake.lake.generations import Generation, Generations
from gamelake.lake.listing import has_log
from gamelake.lake.manifest import Manifests
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.maintenance.books import streams_of

_WAIT_SECONDS = 120
_LOOK_EVERY_SECONDS = 0.2


def settled_version(store: Store, source: str) -> int:
    """The newest version of a table, once all batches that it has are in every other table too.

    Raises:
        TableNotFoundError: there is no table.
        TransientError: a batch stays half committed; the stream that decided it does not run.
    """
    handle = open_table(store.location, source)
    for stream in streams_of(store):
        generations = Generations(store, stream).all()
        # A new generation begins when the last batch of the one before is in all tables.
        batch = handle.transaction_version(generations[-1].app_id) if generations else None
        if batch is not None:
            _await(store, generations[-1], batch)
    return handle.version()


def _await(store: Store, generation: Generation, batch: int) -> None:
    manifest = Manifests(store, generation.stream).read(batch)
    lacking = [] if manifest is None else [entry.table for entry in manifest.tables]
    deadline = time.monotonic() + _WAIT_SECONDS
    while lacking := [table for table in lacking if not _has(store, table, generation.app_id, batch)]:
        if time.monotonic() > deadline:
            raise TransientError(
                f"batch {batch} of {generation.stream} is not in {lacking[0]} yet, and nobody commits it: start the "
                "stream's job, which finishes it, and try again. Nothing was changed"
            )
        time.sleep(_LOOK_EVERY_SECONDS)


def _has(store: Store, table: str, app_id: str, batch: int) -> bool:
    taken = open_table(store.location, table).transaction_version(app_id) if has_log(store, table) else None
    return taken is not None and taken >= batch
