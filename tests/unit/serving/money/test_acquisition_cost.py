"""The cost of new players: a file replaces its own games, sources and days, and a wrong line is named."""

from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelake.delta.tables import open_table
from gamelake.model.errors import ContractError
from gamelake.model.naming import ACQUISITION_COST
from gamelake.objects.store import Location, Store
from gamelake.serving.money.acquisition_cost import TABLE, import_cost, read_cost
from gamelake.serving.money.imported import create_table

_TITLES = {"kart_rumble": "Kart Rumble", "archery_duel": "Archery Duel"}
_HEADER = "date,game,source,campaign,country,currency,cost"
_DAY = date(2026, 10, 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=f"file://{tmp_path}"))


def file_of(*lines: str, header: str = _HEADER) -> pa.Table:
    return read_cost(StringIO("\n".join([header, *lines])), "cost.csv", _TITLES)


def rows(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_table(store.location, ACQUISITION_COST).to_pyarrow_table().to_pylist()
    return sorted(found, key=str)


def test_a_line_is_the_cost_of_a_campaign_on_a_day() -> None:
    [row] = file_of("2026-10-03,kart_rumble,meta,autumn,DE,EUR,12.5").to_pylist()

    assert row == {
        "event_date": _DAY, "game_name": "Kart Rumble", "source": "meta", "campaign": "autumn", "country": "DE",
        "currency": "EUR", "cost": Decimal("12.5"),
    }  # fmt: skip


def test_the_byte_order_mark_of_a_spreadsheet_is_not_part_of_the_first_column() -> None:
    [row] = file_of("2026-10-03,kart_rumble,meta,,,EUR,1", header=f"\ufeff{_HEADER}").to_pylist()

    assert row["event_date"] == _DAY


def test_country_and_campaign_may_be_missing() -> None:
    header = "cost,currency,date,game,source,campaign"
    [row] = file_of("0,USD,2026-10-03,kart_rumble,meta,", header=header).to_pylist()

    assert (row["country"], row["campaign"], row["cost"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("3.10.2026,kart_rumble,meta,,,EUR,1", "cost.csv:2: '3.10.2026' is not a day"),
        ("2026-10-03,kart_rumbel,meta,,,EUR,1", "cost.csv:2: there is no game 'kart_rumbel'"),
        ("2026-10-03,kart_rumble,,,,EUR,1", "cost.csv:2: the source is missing"),
        ("2026-10-03,kart_rumble,meta,,,Euro,1", "cost.csv:2: 'Euro' is not a code of 3 capital letters"),
        ("2026-10-03,kart_rumble,meta,,de,EUR,1", "cost.csv:2: 'de' is not a code of 2 capital letters"),
        *(
            (f"2026-10-03,kart_rumble,meta,,,EUR,{cost}", f"cost.csv:2: the cost '{cost}' is not a number")
            for cost in ("", "-1", "NaN", "1e30", "12€")
        ),
        ("2026-10-03,kart_rumble", "cost.csv:2: the source is missing"),
    ],
)
def test_a_line_that_can_not_be_read_is_named(line: str, reason: str) -> None:
    with pytest.raises(ContractError, match=reason.replace("(", r"\(")):
        file_of(line)


def test_a_file_without_a_column_is_refused() -> None:
    with pytest.raises(ContractError, match=r"cost.csv:1: the column 'currency' is missing"):
        file_of(header="date,game,source,campaign,cost")


def test_a_file_replaces_its_games_sources_and_days_and_nothing_else(store: Store) -> None:
    first = file_of(
        "2026-10-03,kart_rumble,meta,autumn,DE,EUR,1",
        "2026-10-03,kart_rumble,meta,winter,,EUR,2",
        "2026-10-03,kart_rumble,google,,,EUR,3",
        "2026-10-03,archery_duel,meta,,,EUR,4",
        "2026-10-04,kart_rumble,meta,,,EUR,5",
    )
    done = import_cost(store, first)
    assert (done.rows, done.sources, done.committed) == (5, ("google", "meta"), True)

    import_cost(store, file_of("2026-10-03,kart_rumble,meta,spring,,USD,9"))

    assert sorted(row["cost"] for row in rows(store)) == [3, 4, 5, 9]


def test_an_import_can_be_repeated(store: Store) -> None:
    cost = file_of("2026-10-03,kart_rumble,meta,autumn,DE,EUR,1")

    assert import_cost(store, cost) == import_cost(store, cost)

    assert len(rows(store)) == 1


def test_a_dry_run_writes_nothing(store: Store) -> None:
    done = import_cost(store, file_of("2026-10-03,kart_rumble,meta,,,EUR,1"), dry_run=True)

    assert (done.rows, done.days, done.committed) == (1, (_DAY,), False)
    create_table(store, TABLE)
    assert rows(store) == []
    assert open_table(store.location, ACQUISITION_COST).to_pyarrow_table().schema.names == TABLE.schema.names
