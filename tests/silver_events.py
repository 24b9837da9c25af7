"""silver/events with random events, committed as the stream does."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import SILVER_EVENTS
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json

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
    amount: float | None = None
    taken_in: datetime | None = None
    arrival_is_known: bool = True


def some_events(count: int, seed: int, days: int = 3, lateness: timedelta = timedelta(0)) -> list[Event]:
    """Random events over some days, in the order of their times but for so much of lateness."""
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
        """Where the lakehouse is."""
        return Location(uri=f"file://{self.folder}")

    @property
    def store(self) -> Store:
        """The lakehouse."""
        return Store(self.location)

    def append(self, events: Sequence[Event]) -> TableFiles:
        """Commit events, a file for each day; gives what was committed."""
        rows = as_rows(events)
        days = sorted(set(rows.column("event_date").to_pylist()))
        files = tuple(self._file(rows.filter(pc.field("event_date") == day), str(day)) for day in days)
        entry = TableFiles(
            table=SILVER_EVENTS, partition_by=("event_date",), schema=delta_schema_json(_SCHEMA), files=files
        )
        with DeltaTables(self.location) as tables:
            tables.append(entry, BatchTransaction("test", self.commits))
        self.commits += 1
        self.events.extend(events)
        return entry

    def table(self, name: str) -> pa.Table:
        """All rows of a table of this lakehouse."""
        return DeltaTable(self.folder / name).to_pyarrow_table()

    def _file(self, rows: pa.Table, day: str) -> DataFile:
        content, statistics = encode_parquet(rows.drop_columns(["event_date"]), frozenset())
        path = new_file_name(f"event_date={day}")
        self.store.put(f"{SILVER_EVENTS}/{path}", content.to_pybytes())
        return DataFile(
            path=path, size=content.size, rows=len(rows), partition={"event_date": day}, statistics=statistics
        )


def as_rows(events: Sequence[Event]) -> pa.Table:
    """Events as rows of silver."""
    rows = [
        {
            "event_time": event.at,
            "event_name": event.name,
            "game_name": event.game,
            "gamer_id": event.gamer,
            "session_id": event.session,
            "platform": event.platform,
            "app_version": event.version,
            "amount": event.amount,
            "ingest_time": (event.taken_in or event.at) if event.arrival_is_known else None,
            "event_date": event.at.date(),
        }
        for event in events
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
