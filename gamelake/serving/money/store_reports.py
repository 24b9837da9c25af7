"""Imports the stores' sales reports, to compare them with events.

A report replaces all rows of its store, game and days, so importing it again, or a corrected report, is safe.

Sources: App Store Connect, "Summary Sales Report" (tab-separated), and Google Play Console, "Estimated sales reports"
(CSV).
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TextIO

import msgspec
import pyarrow as pa

from gamelake.delta.declared_table import DeclaredTable
from gamelake.model.errors import ContractError
from gamelake.model.naming import STORE_SALES
from gamelake.objects.store import Store
from gamelake.serving.money.imported import DAY, replace_rows, without_mark

_KEYS = ("store", "game_name")
TABLE = DeclaredTable(
    STORE_SALES.removeprefix("gold/"),
    "Sales and refunds as the stores report them.",
    (DAY, "game_name", "store", "order_id", "product_id"),
    {
        DAY: (pa.date32(), "the day of the store; a condition on it decides which files are read"),
        "game_name": (pa.string(), "the title"),
        "store": (pa.string(), "app_store or google_play"),
        "order_id": (pa.string(), "the store's id of the order; null in reports of the App Store, which have sums"),
        "product_id": (pa.string(), "the product, by the store's name for it"),
        "country": (pa.string(), "of the buyer, ISO 3166-1 alpha-2"),
        "currency": (pa.string(), "of amount, ISO 4217"),
        "units": (pa.int64(), "how many were sold; negative for refunds"),
        "amount": (pa.decimal128(38, 6), "what players paid, with tax; negative for refunds"),
    },
    partition_by=(DAY,),
)
_Row = Mapping[str, str]


class ReportingStore(StrEnum):
    """The stores whose reports can be imported."""

    APP_STORE = "app_store"
    GOOGLE_PLAY = "google_play"


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a store's report.

    Attributes:
        delimiter: between two columns.
        columns: the names of the columns that are read.
        app: the column that names the app of a row.
        sale: makes the columns of TABLE from `order_id` on, and the day, of a row.
    """

    delimiter: str
    columns: Sequence[str]
    app: str
    sale: Callable[[_Row], Mapping[str, object]]


class ReportImported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        rows: the number of sales and refunds in the report.
        other_apps: the number of lines of other apps, and of lines without a price.
        days: the days of the report.
        committed: False if nothing was written.
    """

    rows: int
    other_apps: int
    days: tuple[date, ...]
    committed: bool


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The sales of one game in one report.

    Attributes:
        sales: the columns of TABLE, in any order of rows.
        left_out: lines of other apps, and lines without a price.
    """

    sales: pa.Table
    left_out: int


def read_report(lines: TextIO, name: str, store: ReportingStore, app: str, game_name: str) -> StoreReport:
    """Read the sales of one app from a report.

    Args:
        lines: the report.
        name: the name of the file, for errors.
        store: the store that made it.
        app: the app in the report: the package on Google Play, the SKU in the App Store.
        game_name: the game's title.

    Raises:
        ContractError: a column is missing, or a line can't be read; names file and line.
    """
    layout = _LAYOUTS[store]
    rows = csv.DictReader(without_mark(lines), delimiter=layout.delimiter)
    if missing := [column for column in layout.columns if column not in (rows.fieldnames or ())]:
        raise ContractError(f"{name}:1: a report of {store} has the column '{missing[0]}', and this file lacks it")
    found, left_out = [], 0
    for row in rows:
        try:
            sale = layout.sale(row) if row[layout.app] == app else {"amount": 0}
        except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation):
            raise ContractError(f"{name}:{rows.line_num}: a day, a number or a status can't be read") from None
        if sale["amount"]:
            found.append({"game_name": game_name, "store": store.value, **sale})
        else:
            left_out += 1
    return StoreReport(pa.Table.from_pylist(found, schema=TABLE.schema), left_out)


def import_report(store: Store, report: StoreReport, *, dry_run: bool = False) -> ReportImported:
    """Replace the rows of the report's store, game and days.

    Args:
        store: the lakehouse.
        report: the report.
        dry_run: compute the result, and write nothing.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    days = sorted(set(report.sales.column(DAY).to_pylist()))
    result = ReportImported(
        rows=len(report.sales), other_apps=report.left_out, days=tuple(days), committed=not dry_run and bool(days)
    )
    if result.committed:
        replace_rows(store, TABLE, report.sales, _KEYS)
    return result


def _number(text: str) -> Decimal:
    found = Decimal(text.replace(",", "").strip())
    if not found.is_finite():
        raise ValueError(text)
    return found


def _of_app_store(row: _Row) -> Mapping[str, object]:
    units, price = int(_number(row["Units"])), abs(_number(row["Customer Price"] or "0"))
    return {
        DAY: datetime.strptime(row["Begin Date"], "%m/%d/%Y").date(),  # noqa: DTZ007 # a day of the store
        "order_id": None,
        "product_id": row["SKU"],
        "country": row["Country Code"],
        "currency": row["Customer Currency"],
        "units": units,
        "amount": units * price,
    }


def _of_google_play(row: _Row) -> Mapping[str, object]:
    # A status is Charged, Refund or Partial refund; amounts of refunds are negative.
    is_refund = {"charged": False, "refund": True, "partial refund": True}[row["Financial Status"].strip().lower()]
    amount = abs(_number(row["Charged Amount"]))
    return {
        DAY: _day(row["Order Charged Date"]),
        "order_id": row["Order Number"],
        "product_id": row["SKU ID"],
        "country": row["Country of Buyer"],
        "currency": row["Currency of Sale"],
        "units": -1 if is_refund else 1,
        "amount": -amount if is_refund else amount,
    }


def _day(text: str) -> date:
    """Parse a day as 2026-10-03 or as Oct 3, 2026."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        return datetime.strptime(text.strip(), "%b %d, %Y").date()  # noqa: DTZ007 # a day of the store


_LAYOUTS: Mapping[ReportingStore, _Layout] = {
    ReportingStore.APP_STORE: _Layout(
        delimiter="\t",
        columns=(
            "SKU",
            "Units",
            "Begin Date",
            "Customer Currency",
            "Country Code",
            "Customer Price",
            "Parent Identifier",
        ),
        app="Parent Identifier",
        sale=_of_app_store,
    ),
    ReportingStore.GOOGLE_PLAY: _Layout(
        delimiter=",",
        columns=(
            *("Order Number", "Order Charged Date", "Financial Status", "Package ID", "SKU ID"),
            *("Currency of Sale", "Charged Amount", "Country of Buyer"),
        ),
        app="Package ID",
        sale=_of_google_play,
    ),
}
