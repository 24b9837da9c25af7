"""A day of a game of any events, and what each path of the platform says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake import write_deltalake
from hypothesis import strategies as st

from gamelake.contract.games import GameSpec
from gamelake.delta.listing import table_names
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.money.tables import prepare_money
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tests.support.silver_events import BEGINNING, Event, Silver

GAME = GameSpec(name="archery", match=("Archery",))
CONTRACT = msgspec.structs.replace(load_gold(Path("contracts/games.yaml")), games=(GAME,))
VIEWS = load_views(Path("sql/views"), Path("contracts/games.yaml"))
Figures = Mapping[str, object]

EVENTS = st.builds(
    Event,
    at=st.integers(0, 86_399).map(lambda second: BEGINNING + timedelta(seconds=second)),
    name=st.sampled_from(
        ["session_start", "level_completed", "purchase", "purchase", "subscription_renewed", "smoke_test", None]
    ),
    gamer=st.sampled_from(["ann", "bob", "eve", None]),
    # Some games number each player's sessions, and have events outside of any.
    session=st.sampled_from(["1", "2", "", None]),
    amount=st.sampled_from([None, 0.5, 5.0]),
)


def by_hand(events: Sequence[Event]) -> Figures:
    """The figures of the events, by the meanings that contracts/metrics.yaml states."""
    played = [event for event in events if event.name != "smoke_test"]
    bought = [event for event in played if event.name == "purchase" and event.amount is not None]
    return {
        "events": len(played),
        "players": len({event.gamer for event in played} - {None}),
        "sessions": len({(event.gamer, event.session) for event in played if event.gamer and event.session}),
        "purchases": len(bought),
        "payers": len({event.gamer for event in bought} - {None}),
        "bookings": sum(event.amount or 0 for event in bought),
    }


@dataclass(frozen=True)
class Day:
    """A lakehouse with these events, and everything that is computed of them."""

    lake: Path
    events: Sequence[Event]

    def __post_init__(self) -> None:
        """Compute gold and the KPIs."""
        silver = Silver(self.lake)
        silver.append(self.events)
        store = Store(silver.location)
        rows = silver.table(SILVER_EVENTS)
        # The game's messages can have an error, which these events have not.
        rows = rows.append_column("error", pa.nulls(len(rows), pa.struct([("fatal", pa.bool_())])))
        write_deltalake(self.lake / game_table(GAME.name), rows, partition_by=[EVENT_DATE])
        prepare_money(store, Path("contracts/rates.csv"))
        for table in GoldTables(store, CONTRACT).now():
            refreshed = attempt(table)
            assert isinstance(refreshed, Refreshed), refreshed.reason
        assert KpiRefresh(store)().failed == ()

    def ask(self, sql: str) -> Figures:
        """The first row of a result; nothing if there is none."""
        rows = self.rows(sql)
        return rows[0] if rows else {}

    def rows(self, sql: str) -> Sequence[Figures]:
        location = Location(uri=self.lake.as_uri())
        relations = Relations(table_names(Store(location)), VIEWS, (GAME,))
        rows: list[dict[str, object]] = answer(sql, relations.read_by(sql), location).to_pylist()
        return rows
