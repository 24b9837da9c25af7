"""Which records a replay reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gamelake.lake.manifest import OffsetRange
from gamelake.naming import QUARANTINE


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
