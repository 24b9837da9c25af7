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
    """Records of a table, by what they must have in common; what is empty asks for nothing.

    Attributes:
        source: the table: bronze, the dead letters or the quarantine.
        reasons: of dead letters; `rules`: by which rows were quarantined.
        since, until: when Kafka took the records in, the end not included.
        offsets: of one topic.
    """

    source: str
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    offsets: tuple[OffsetRange, ...] = ()


def place_of(selection: Selection, name: str) -> str:
    """The column that has a part of the record's coordinates: the quarantine names them as silver does."""
    return f"kafka_{name}" if selection.source == QUARANTINE and name in ("partition", "offset") else name


def joined(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The same offsets in as few ranges as there can be."""
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
