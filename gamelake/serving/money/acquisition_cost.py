"""Imports the cost of new players from CSV files of advertising networks, to compare it with installs and revenue.

A file replaces all rows of its games, sources and days, so importing it again, or a corrected file, is safe.
"""

import csv
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TextIO

import msgspec
import pyarrow as pa

from gamelake.delta.declared_table import DeclaredTable
from gamelake.model.choices import allowed
from gamelake.model.errors import ContractError
from gamelake.model.naming import ACQUISITION_COST
from gamelake.objects.store import Store
from gamelake.serving.money.imported import DAY, replace_rows, without_mark

TABLE = DeclaredTable(
    ACQUISITION_COST.removeprefix("gold/"),
    "The cost of new players, by source and campaign.",
    (DAY, "game_name", "source", "campaign", "country", "currency"),
    {
        DAY: (pa.date32(), "the day of the cost; a condition on it decides which files are read"),
        "game_name": (pa.string(), "the title"),
        "source": (pa.string(), "the network, as install.source of the game's events names it"),
        "campaign": (pa.string(), "the campaign, by the network's name for it; null if the file has none"),
        "country": (pa.string(), "the players' country, ISO 3166-1 alpha-2; null if the file has none"),
        "currency": (pa.string(), "the currency of cost, ISO 4217"),
        "cost": (pa.decimal128(38, 6), "the amount spent"),
    },
    partition_by=(DAY,),
)
_COLUMNS = ("date", "game", "source", "campaign", "currency", "cost")
_OPTIONAL = "country"
_KEYS = ("game_name", "source")
# A larger cost of a day and campaign is a mistake in the unit.
_MOST = Decimal(10**12)
_PLACES = Decimal("0.000001")
_A_CURRENCY, _A_COUNTRY = "EUR", "DE"


class CostImported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        rows: the number of lines with a cost.
        sources: the sources in the file, in order.
        days: the days in the file, in order.
        committed: False if nothing was written.
    """

    rows: int
    sources: tuple[str, ...]
    days: tuple[date, ...]
    committed: bool


def read_cost(lines: TextIO, name: str, titles: Mapping[str, str]) -> pa.Table:
    """Read a CSV file with the columns `date,game,source,campaign,currency,cost` in any order; `country` is optional.

    Args:
        lines: the file.
        name: the name of the file, for errors.
        titles: the title of each game, by its name in games.yaml.

    Returns:
        The columns of the table, in the order of the file.

    Raises:
        ContractError: a column is missing, or a line can't be read; names file and line.
    """
    rows = csv.DictReader(without_mark(lines))
    if missing := [column for column in _COLUMNS if column not in (rows.fieldnames or ())]:
        raise ContractError(f"{name}:1: the column '{missing[0]}' is missing; write {','.join(_COLUMNS)}")
    found = [_cost(row, f"{name}:{rows.line_num}", titles) for row in rows]
    return pa.Table.from_pylist(found, schema=TABLE.schema)


def import_cost(store: Store, cost: pa.Table, *, dry_run: bool = False) -> CostImported:
    """Replace the rows of the file's games, sources and days.

    Args:
        store: the lakehouse.
        cost: the new rows, with the columns of the table.
        dry_run: compute the result, and write nothing.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    result = CostImported(
        rows=len(cost),
        sources=tuple(sorted(set(cost.column("source").to_pylist()))),
        days=tuple(sorted(set(cost.column(DAY).to_pylist()))),
        committed=not dry_run and len(cost) > 0,
    )
    if result.committed:
        replace_rows(store, TABLE, cost, _KEYS)
    return result


def _cost(row: Mapping[str, str | None], place: str, titles: Mapping[str, str]) -> dict[str, object]:
    given = {column: (row.get(column) or "").strip() for column in (*_COLUMNS, _OPTIONAL)}
    if given["game"] not in titles:
        raise ContractError(f"{place}: there is no game '{given['game']}'; name {allowed(titles, given['game'])}")
    if not given["source"]:
        raise ContractError(f"{place}: the source is missing; name the network as install.source does")
    return {
        DAY: _day(given["date"], place),
        "game_name": titles[given["game"]],
        "source": given["source"],
        "campaign": given["campaign"] or None,
        "country": _code(given[_OPTIONAL], _A_COUNTRY, place) if given[_OPTIONAL] else None,
        "currency": _code(given["currency"], _A_CURRENCY, place),
        "cost": _amount(given["cost"], place),
    }


def _day(text: str, place: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ContractError(f"{place}: '{text}' is not a day, such as 2026-11-30") from None


def _code(text: str, example: str, place: str) -> str:
    if len(text) == len(example) and text.isascii() and text.isalpha() and text.isupper():
        return text
    raise ContractError(f"{place}: '{text}' is not a code of {len(example)} capital letters, such as {example}")


def _amount(text: str, place: str) -> Decimal:
    try:
        amount = Decimal(text)
        if 0 <= amount <= _MOST:
            return amount.quantize(_PLACES)
    except InvalidOperation:
        pass
    raise ContractError(f"{place}: the cost '{text}' is not a number from 0 to {_MOST}")
