"""The lineage events that still say something: of each job and each of its inputs and outputs, the newest."""

from pathlib import Path

from deltalake.exceptions import TableNotFoundError

from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.lineage.recorded import RecordedEvent, decode, names
from gamelake.naming import LINEAGE_EVENTS

_KEYS = ["event_time", "job", "inputs", "outputs"]


def recorded(store: Store) -> list[RecordedEvent]:
    """The events of a lakehouse, oldest first; none if there are none yet."""
    try:
        handle = open_table(store.location, LINEAGE_EVENTS)
    except TableNotFoundError:
        return []
    rows = handle.to_pyarrow_table(columns=[*_KEYS, "event"]).sort_by("event_time")
    newest: dict[tuple[str, str, str], int] = {}
    # A job that runs for a year has told ten thousand times; what it told in all may be large, and is not looked into.
    for place, row in enumerate(rows.select(_KEYS).to_pylist()):
        newest |= {(row["job"], side, name): place for side in ("inputs", "outputs") for name in row[side] or ()}
        newest[row["job"], "", ""] = place
    return [decode(text) for text in rows["event"].take(sorted(set(newest.values()))).to_pylist()]


def recorded_in(file: Path) -> list[RecordedEvent]:
    """The events of a file, oldest first."""
    events = [decode(line) for line in file.read_bytes().splitlines() if line]
    newest = {(event.job.name, names(event.inputs), names(event.outputs)): event for event in events}
    return sorted(newest.values(), key=lambda event: event.event_time)
