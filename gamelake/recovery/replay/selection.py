"""The selection of the records that a replay reads."""

from dataclasses import dataclass
from datetime import datetime

from gamelake.ledger.coordinates import CoordinateRange
from gamelake.model.naming import QUARANTINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions on the records of a table; an empty one selects all.

    Attributes:
        source: the table: bronze, the dead letters or the quarantine.
        reasons: reasons of dead letters; empty for all.
        rules: rules that quarantined the rows; empty for all.
        since: the first Kafka timestamp; None for no bound.
        until: the end of the Kafka timestamps, exclusive; None for no bound.
        coordinates: ranges of the records' coordinates; empty for all.
    """

    source: str
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    coordinates: tuple[CoordinateRange, ...] = ()


def column_of(selection: Selection, name: str) -> str:
    """Return the name of a Kafka coordinate's column in the source; the quarantine uses the names of silver."""
    return f"kafka_{name}" if selection.source == QUARANTINE and name in ("partition", "offset") else name
