"""silver/events with random events, committed as the stream does."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store

_SCHEMA = COMMON_SCHEMA.append(pa.field("event_date", pa.date32()))
BEGINNING = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event; received when it happened, unless given otherwise, or unless silver does not say when."""

    at: datetime
    game: str = "Archery"
    gamer: str | None = "anna"
    session: str | None = "s1"
    name: str | None = "level_completed"
    platform: str | None = "ios"
    version: str = "1.0"
    country: str | None = None
    source: str | None = None
    amount: float | None = None
    taken_in: datetime | None = None
    arrival_is_known: bool = True


def some_events(count: int, seed: int, days: int = 3, lateness: timedelta = timedelta(0)) -> list[Event]:
    """Return random events over some days, ordered by time except for a given lateness."""
    draw = random.Random(seed)
    moments = sorted(draw.uniform(0, days * 86_400) for _ in range(count))
    events = [_some_event(draw, BEGINNING + timedelta(seconds=second)) for second in moments]
    order = [at + draw.uniform(0, lateness.total_seconds()) for at in moments]
    return [event for _, event in sorted(zip(order, events, strict=True), key=lambda pair: pair[0])]


def _some_event(draw: random.Random, at: datetime) -> Event:
    gamer, purchase = f"g{draw.randrange(40)}", draw.random() < 0.1
    return Event(
        at=at.replace(microsecond=0),
        game=draw.choice(("Archery", "Bingo")),
        gamer=gamer if draw.random() < 0.98 else None,
        session=f"{gamer}-{at:%d%H}" if draw.random() < 0.98 else None,
        name="purchase" if purchase else "level_completed",
        platform=draw.choice(("ios", "android", None)),
        version=draw.choice(("1.0", "1.1")),
        amount=draw.choice((0.99, 4.99, 19.99)) if purchase else None,
    )


@dataclass
class Silver:
    """A lakehouse with silver/events alone; `events` is all that was appended."""

    folder: Path
    events: list[Event] = field(default_factory=list)
    commits: int = 0

    @property
    def location(self) -> Location:
        return Location(uri=f"file://{self.folder}")

    @property
    def store(self) -> Store:
        return Store(self.location)

    def append(self, events: Sequence[Event], table: str = SILVER_EVENTS) -> TableFiles:
        """Commit events, a file for each day. Return what was committed."""
        rows = as_rows(events)
        days = sorted(set(rows.column("event_date").to_pylist()))
        files = tuple(self._file(table, rows.filter(pc.field("event_date") == day), str(day)) for day in days)
        entry = TableFiles(table=table, partition_by=("event_date",), schema=delta_schema_json(_SCHEMA), files=files)
        with DeltaTables(self.location) as tables:
            tables.append(entry, BatchTransaction("test", self.commits))
        self.commits += 1
        self.events.extend(events)
        return entry

    def table(self, name: str) -> pa.Table:
        """All rows of a table of this lakehouse."""
        return DeltaTable(self.folder / name).to_pyarrow_table()

    def _file(self, table: str, rows: pa.Table, day: str) -> DataFile:
        return write_rows(self.store, table, rows.drop_columns(["event_date"]), {"event_date": day})


def as_rows(events: Sequence[Event]) -> pa.Table:
    rows = [
        {
            "event_time": event.at,
            "event_name": event.name,
            "game_name": event.game,
            "gamer_id": event.gamer,
            "session_id": event.session,
            "platform": event.platform,
            "app_version": event.version,
            "country": event.country,
            "install_source": event.source,
            "amount": event.amount,
            "ingest_time": (event.taken_in or event.at) if event.arrival_is_known else None,
            "event_date": event.at.date(),
        }
        for event in events
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
