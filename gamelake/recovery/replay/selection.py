"""Which records a replay reads."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gamelake.model.naming import QUARANTINE
from gamelake.storage.generations import Generations
from gamelake.storage.manifests import Manifests, OffsetRange
from gamelake.storage.reconciliation import streams_of
from gamelake.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on the records of a table; an empty one selects all.

    Attributes:
        source: the table: bronze, the dead letters or the quarantine.
        reasons: of dead letters.
        rules: those that quarantined the rows.
        since: first Kafka timestamp.
        until: end of the Kafka timestamps, exclusive.
        offsets: offset ranges of one topic.
    """

    source: str
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    offsets: tuple[OffsetRange, ...] = ()


def column_of(selection: Selection, name: str) -> str:
    """The column of a Kafka coordinate: the quarantine names them as silver does."""
    return f"kafka_{name}" if selection.source == QUARANTINE and name in ("partition", "offset") else name


def joined(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Merge overlapping and adjacent offset ranges of each partition."""
    result: list[OffsetRange] = []
    for each in sorted(ranges, key=lambda taken: (taken.partition, taken.first)):
        last = result[-1] if result else None
        if last is None or last.partition != each.partition or each.first > last.last + 1:
            result.append(each)
        else:
            records = last.records + each.records
            result[-1] = OffsetRange(
                partition=last.partition, first=last.first, last=max(last.last, each.last), records=records
            )
    return tuple(result)


def offsets_of(store: Store, transactions: Collection[str]) -> tuple[OffsetRange, ...]:
    """The offset ranges of batches, named `application/batch` as in the tables' logs."""
    wanted = set(transactions)
    return joined(taken for stream in streams_of(store) for taken in _of_stream(store, stream, wanted))


def streams_in(store: Store, transactions: Collection[str]) -> tuple[str, ...]:
    """The streams that wrote these batches."""
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
