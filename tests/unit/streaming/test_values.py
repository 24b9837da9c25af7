"""No value that the contract lets in stops anything, or differs between the tables and engines that hold it."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.games import GamesContract, GameSpec, PartitionColumn
from gamelake.delta.appends import BatchTransaction
from gamelake.layers.silver import NESTED_COLUMNS
from gamelake.ledger.held_tables import stream_tables
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS
from gamelake.scans.sql_engine import without_zones
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.streaming.driver.table_columns import TableColumns
from tests.unit.properties import examples
from tests.unit.streaming.tasks import KART, KART_TABLE, Json, TaskLakehouse, TaskOutcome, a_record, numbered

BY = (PartitionColumn.EVENT_DATE, PartitionColumn.EVENT_NAME, PartitionColumn.PLATFORM)
Read = Callable[[Path], list[Json]]


def commit(lakehouse: TaskLakehouse, outcome: TaskOutcome, batch: int = 0) -> None:
    """Commit what a task wrote to all tables, as the driver does."""
    entries = TableColumns({}).agree(outcome.files)
    with stream_tables(lakehouse.location) as tables:
        for entry in entries:
            tables.append(entry, BatchTransaction("test", batch))


def by_delta_rs(table: Path) -> list[Json]:
    rows: list[Json] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return rows


def by_duckdb(table: Path) -> list[Json]:
    with duckdb.connect() as connection:
        rows = DeltaTable(table).to_pyarrow_dataset().to_table()
        connection.register("rows", rows.cast(without_zones(rows.schema)))
        found: list[Json] = connection.sql("SELECT * FROM rows").to_arrow_table().to_pylist()
        return found


@pytest.mark.parametrize("read", [by_delta_rs, by_duckdb])
def test_an_empty_text_of_a_common_column_is_null_in_both_tables_whether_it_partitions_one_or_not(
    read: Read, tmp_path: Path
) -> None:
    kart = GameSpec(name=KART.name, match=KART.match, partition_by=BY)
    yeti = GameSpec(name="yeti_ski", match=("Yeti Ski",))
    lakehouse = TaskLakehouse(tmp_path, GamesContract(games=(kart, yeti)))
    names = [("", ""), ("", "ios"), ("purchase", ""), ("purchase", "ios")]
    records = [a_record(1, eventName=name, eventParams={"platform": platform}) for name, platform in names]
    records.append(a_record(1, gameName="Yeti Ski", eventName="", eventParams={"platform": ""}))

    commit(lakehouse, lakehouse.run(numbered(records)))

    def values(table: str) -> list[tuple[object, ...]]:
        rows = sorted(read(tmp_path / table), key=lambda row: int(row["kafka_offset"]))
        return [(row["game_name"], row["event_name"], row["platform"]) for row in rows]

    of_game = [("Kart Rumble", name or None, platform or None) for name, platform in names]
    assert values(KART_TABLE) == of_game
    assert values(SILVER_EVENTS) == [*of_game, ("Yeti Ski", None, None)]


TEXTS = st.one_of(
    st.sampled_from(["", " ", "\0", "e\u0301", "\U00020bb7", "\U0010ffff", "\ufeff", "a/b=c%20", "'\"\n", "x" * 5_000]),
    st.text(max_size=6),
)
AMOUNTS = st.one_of(
    st.sampled_from(
        ["NaN", "Infinity", "-Infinity", 1e308, -1e308, 1e13, -1e13, 1e12, 1_000_000, -1_000_000, 5e-324, -0.0]
    ),
    st.floats(-1e6, 1e6),
)
TIMES = st.one_of(
    st.sampled_from(
        [
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "1969-12-31T23:59:59.999999999Z",
            "2026-01-03T11:00:00Z",
        ]
    ),
    st.just("2026-01-01T11:59:59.999999999Z"),
)
NUMBERS = st.sampled_from([0, -1, 2**31 - 1, -(2**31)])
ABSENT = st.none()
# A field that is not drawn has the value of a good event.
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "eventId": ABSENT | TEXTS,
        "eventName": ABSENT | TEXTS,
        "eventTime": ABSENT | TIMES,
        "ingestTime": TIMES,
        "gameName": ABSENT | TEXTS,
        "gamerId": ABSENT | TEXTS,
        "sessionId": TEXTS,
        "eventParams": st.fixed_dictionaries(
            {},
            optional={
                "platform": TEXTS, "appVersion": TEXTS, "amount": AMOUNTS, "country": TEXTS, "level": NUMBERS,
            },
        ),
        "attributes": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "experimentIds": st.lists(TEXTS, max_size=2),
        "purchase": st.fixed_dictionaries(
            {}, optional={"productId": TEXTS, "priceMicros": st.sampled_from([0, 2**63 - 1, -(2**63)])}
        ),
    },
)  # fmt: skip


@examples(8)
@given(events=st.lists(EVENTS, min_size=1, max_size=12))
def test_no_value_that_the_contract_lets_in_stops_anything(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
) -> None:
    kart = GameSpec(name=KART.name, match=KART.match, partition_by=BY)
    yeti = GameSpec(name="yeti_ski", match=("Yeti Ski",))
    contract = msgspec.structs.replace(load_gold(Path("contracts/games.yaml")), games=(kart, yeti))
    folder = tmp_path_factory.mktemp("values")
    lakehouse = TaskLakehouse(folder, contract)
    good = a_record(1, gameName="Yeti Ski", eventName="purchase", eventParams={"amount": 0.1})
    odd = [a_record(3, **event) for event in events]
    outcome = lakehouse.run(numbered([*odd, good]))

    commit(lakehouse, outcome)

    tables = [SILVER_EVENTS, *sorted(outcome.game_tables)]
    for table in tables:
        assert len(by_delta_rs(folder / table)) == len(by_duckdb(folder / table)) == outcome.count(table)
    assert outcome.count(SILVER_EVENTS) + outcome.count(DEAD_LETTERS) == len(events) + 1
    common = by_delta_rs(folder / SILVER_EVENTS)
    of_games = [row for table in outcome.game_tables for row in by_delta_rs(folder / table)]
    assert _shared(common, common) == _shared(of_games, common), "both tables of an event have the same values"
    refreshed = [attempt(each) for each in GoldTables(lakehouse.store, contract).now()]
    assert [each for each in refreshed if not isinstance(each, Refreshed)] == []
    (player,) = by_delta_rs(folder / "gold/yeti_ski_player_agg")
    assert player["bookings"] == Decimal("0.1")
    assert KpiRefresh(lakehouse.store)().failed == ()
    (day,) = [row for row in by_delta_rs(folder / "gold/kpi_daily") if row["game_name"] == "Yeti Ski"]
    assert (day["events"], day["bookings"]) == (1, Decimal("0.1"))


def _shared(rows: list[Json], common: list[Json]) -> list[tuple[str, ...]]:
    """The values of the columns of `common` that games' tables have too, as texts: NaN does not equal itself."""
    names = sorted(common[0].keys() - NESTED_COLUMNS.keys())
    return sorted(tuple(repr(row.get(name)) for name in names) for row in rows)
