"""Which records came in which batches, by the manifests of the streams."""

from collections.abc import Collection, Iterator

from gamelake.lake.generations import Generations
from gamelake.lake.manifest import Manifests, OffsetRange
from gamelake.lake.store import Store
from gamelake.maintenance.books import streams_of
from gamelake.replay.selection import joined


def offsets_of(store: Store, transactions: Collection[str]) -> tuple[OffsetRange, ...]:
    """The records of batches, which are named as the tables' logs name them: `application/batch`."""
    wanted = set(transactions)
    return joined(taken for stream in streams_of(store) for taken in _of_stream(store, stream, wanted))


def streams_in(store: Store, transactions: Collection[str]) -> tuple[str, ...]:
    """The streams whose batches these are."""
    applications = {transaction.rpartition("/")[0] for transaction in transactions}
    return tuple(
        stream
        for stream in streams_of(store)
        if applications & {generation.app_id for generation in Generations(store, stream).all()}
    )


def _of_stream(store: Store, stream: str, wanted: set[str]) -> Iterator[OffsetRange]:
    ours = {generation.app_id for generation in Generations(store, stream).all()}
    manifests = Manifests(store, stream)
    for transaction in wanted:
        app_id, _, batch = transaction.rpartition("/")
        manifest = manifests.read(int(batch)) if app_id in ours else None
        if manifest is not None and manifest.app_id == app_id:
            yield from manifest.offsets
