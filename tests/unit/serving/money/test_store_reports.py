"""Sales reports of app stores: a report replaces its own days only, and a line that can't be read is named."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gamelake.delta.tables import open_table
from gamelake.model.errors import ContractError
from gamelake.model.naming import STORE_SALES
from gamelake.objects.store import Location, Store
from gamelake.serving.money.imported import create_table
from gamelake.serving.money.store_reports import (
    TABLE,
    ReportingStore,
    StoreReport,
    import_report,
    read_report,
)
from gamelake.serving.money.tables import prepare_money

_GOOGLE = (
    *("Order Number", "Order Charged Date", "Financial Status", "Package ID", "SKU ID", "Currency of Sale"),
    *("Charged Amount", "Country of Buyer"),
)
_APPLE = ("SKU", "Units", "Begin Date", "Customer Currency", "Country Code", "Customer Price", "Parent Identifier")
_DAY = date(2026, 10, 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=f"file://{tmp_path}"))


def google(*lines: Sequence[str], game: str = "Kart Rumble") -> StoreReport:
    text = "\n".join(",".join(f'"{each}"' for each in line) for line in (_GOOGLE, *lines))
    return read_report(StringIO(text), "sales.csv", ReportingStore.GOOGLE_PLAY, "com.kart", game)


def apple(*lines: Sequence[str]) -> StoreReport:
    text = "\n".join("\t".join(line) for line in (_APPLE, *lines))
    return read_report(StringIO(text), "sales.txt", ReportingStore.APP_STORE, "kart", "Kart Rumble")


def sale(order: str = "GPA.1", day: str = "2026-10-03", status: str = "Charged", amount: str = "4.99") -> Sequence[str]:
    return (order, day, status, "com.kart", "gems", "EUR", amount, "DE")


def rows(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_table(store.location, STORE_SALES).to_pyarrow_table().to_pylist()
    return found


def test_a_line_of_google_play_is_an_order() -> None:
    of_another_app = ("GPA.3", *sale()[1:3], "com.other", *sale()[4:])
    report = google(sale(amount="1,234.50"), sale("GPA.2", "Oct 3, 2026", "Refund", "-4.99"), of_another_app)

    assert report.sales.schema == TABLE.schema
    assert report.left_out == 1
    sold, refunded = report.sales.to_pylist()
    assert (sold["order_id"], sold["units"], sold["amount"]) == ("GPA.1", 1, Decimal("1234.5"))
    assert (refunded["event_date"], refunded["units"], refunded["amount"]) == (_DAY, -1, Decimal("-4.99"))


def test_a_line_of_the_app_store_is_a_sum() -> None:
    report = apple(
        ("gems", "3", "10/03/2026", "JPY", "JP", "150", "kart"),
        ("gems", "-1", "10/03/2026", "JPY", "JP", "-150", "kart"),
        ("kart", "90", "10/03/2026", "USD", "US", "0", " "),
    )

    found = [(row["units"], row["amount"], row["country"]) for row in report.sales.to_pylist()]
    assert found == [(3, 450, "JP"), (-1, -150, "JP")]
    assert (report.left_out, report.sales.column("event_date").to_pylist()) == (1, [_DAY, _DAY])


@pytest.mark.parametrize(
    "line",
    [
        sale(day="yesterday"),
        sale(status="Lost"),
        sale(amount="much"),
        sale(amount="nan"),
        sale()[:5],
    ],
)
def test_a_line_that_can_not_be_read_is_named(line: Sequence[str]) -> None:
    with pytest.raises(ContractError, match=r"sales\.csv:3: a day, a number or a status can't be read"):
        google(sale(), line)


def test_a_file_of_another_layout_is_refused() -> None:
    with pytest.raises(ContractError, match=r"sales\.csv:1: a report of google_play has the column 'Order Number'"):
        read_report(StringIO("a,b\n1,2\n"), "sales.csv", ReportingStore.GOOGLE_PLAY, "com.kart", "Kart Rumble")


def test_a_report_replaces_the_days_of_its_store_and_game_and_no_others(store: Store) -> None:
    import_report(store, google(sale(), sale("GPA.2", "2026-10-04")))
    import_report(store, google(sale("GPA.8"), game="Rail Baron"))
    import_report(store, apple(("gems", "3", "10/03/2026", "JPY", "JP", "150", "kart")))

    done = import_report(store, google(sale("GPA.1", amount="5.99"), sale("GPA.7")))

    assert (done.rows, done.days, done.committed) == (2, (_DAY,), True)
    found = sorted((row["order_id"] or "", row["game_name"], float(row["amount"])) for row in rows(store))
    assert found == [
        ("", "Kart Rumble", 450.0),
        ("GPA.1", "Kart Rumble", 5.99),
        ("GPA.2", "Kart Rumble", 4.99),
        ("GPA.7", "Kart Rumble", 4.99),
        ("GPA.8", "Rail Baron", 4.99),
    ]


def test_the_same_report_twice_counts_once_and_a_dry_run_writes_nothing(store: Store) -> None:
    create_table(store, TABLE)
    create_table(store, TABLE)
    assert import_report(store, google(sale()), dry_run=True).committed is False
    assert rows(store) == []

    for _ in range(2):
        import_report(store, google(sale()))

    assert [row["order_id"] for row in rows(store)] == ["GPA.1"]


def test_a_lakehouse_that_can_not_be_written_stops_no_other_table(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "gold").write_text("not a folder")

    prepare_money(store, Path("contracts/rates.csv"))

    assert [record.levelname for record in caplog.records if "_not_" in record.getMessage()] != []
    (tmp_path / "gold").unlink()
    prepare_money(store, Path("contracts/rates.csv"))
    assert rows(store) == []


def test_rates_that_can_not_be_written_stop_no_other_table(store: Store, tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold/currency_rates").write_text("not a folder")

    prepare_money(store, Path("contracts/rates.csv"))

    assert rows(store) == []
