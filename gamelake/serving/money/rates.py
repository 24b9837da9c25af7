"""The table of exchange rates: imported from files, one row for each time in which a rate of a currency is valid.

A rate is valid from its date to the next one of its currency; the last one stays valid. A rate replaces an earlier
imported one of the same currency and date.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import msgspec
import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.declared_table import DeclaredTable
from gamelake.delta.listing import has_log
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.model.errors import ContractError
from gamelake.model.logs import event_logger
from gamelake.model.naming import CURRENCY_RATES
from gamelake.objects.store import Store
from gamelake.serving.money.imported import without_mark

log = event_logger(__name__)

# The rates that are shipped lie next to the games contract.
RATES_FILE = "rates.csv"
_ATTEMPTS = 10
_ISO = "EUR"
_HEADER = ["date", "currency", "usd"]
_FOR_EVER = date(9999, 12, 31)
TABLE = DeclaredTable(
    CURRENCY_RATES.removeprefix("gold/"),
    "Exchange rates, each for the days in which it is valid.",
    ("currency", "valid_from"),
    {
        "currency": (pa.string(), "ISO 4217"),
        "valid_from": (pa.date32(), "the first day of the rate"),
        "valid_until": (pa.date32(), "the first day that has another rate; in the year 9999 for the last one"),
        "usd": (pa.float64(), "how many US dollars one unit of the currency is worth"),
    },
)
# The rate of a currency on a date.
Rates = Mapping[tuple[str, date], float]


class RatesImported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        rates: the number of rates in the file.
        changed: how many of them are new, or differ from those in the table.
        currencies: the currencies that the table has afterwards.
        committed: False if nothing was written.
    """

    rates: int
    changed: int
    currencies: tuple[str, ...]
    committed: bool


def read_rates(lines: TextIO, name: str) -> Rates:
    """Read a CSV file with the header `date,currency,usd`.

    Args:
        lines: the file.
        name: the name of the file, for errors.

    Raises:
        ContractError: a line is not a rate; names file and line.
    """
    rows = csv.reader(without_mark(lines))
    if next(rows, None) != _HEADER:
        raise ContractError(f"{name}:1: the first line must be {','.join(_HEADER)}")
    return dict(_rate(row, f"{name}:{rows.line_num}") for row in rows if row)


def _rate(row: list[str], place: str) -> tuple[tuple[str, date], float]:
    try:
        day, currency, value = row
        rate = float(value)
        known = (currency, date.fromisoformat(day))
    except ValueError:
        raise ContractError(f"{place}: write a day, a currency and a number, such as 2026-11-30,EUR,1.09") from None
    if not (len(currency) == len(_ISO) and currency.isascii() and currency.isupper()):
        raise ContractError(f"{place}: '{currency}' is not a currency of ISO 4217, such as {_ISO}")
    if not (math.isfinite(rate) and rate > 0):
        raise ContractError(f"{place}: the rate {value} is not a number above 0")
    return known, rate


def import_shipped(store: Store, file: Path) -> None:
    """Import the rates of a file unless the lakehouse has rates; a wrong or missing file stops nothing."""
    try:
        if has_log(store, CURRENCY_RATES):
            return
        with file.open(encoding="utf-8") as lines:
            done = import_rates(store, read_rates(lines, str(file)))
    except (OSError, UnicodeDecodeError, ContractError) as error:
        log.warning("rates_not_imported", file=str(file), error=str(error), action="import rates with gamelake rates")
    else:
        log.info("rates_imported", file=str(file), rates=done.rates)


def import_rates(store: Store, rates: Rates, *, dry_run: bool = False) -> RatesImported:
    """Add rates to the table, which replace those of the same currency and date; create the table if it does not exist.

    Args:
        store: the lakehouse.
        rates: the new rates.
        dry_run: compute the result, and write nothing.

    Raises:
        TransientError: other writers committed first at every attempt.
    """
    table = OwnedTable(store=store, path=CURRENCY_RATES, schema=TABLE.schema, comments=TABLE.comments)

    def attempt() -> RatesImported:
        handle = table.open()
        files = table.files(handle, lambda _: True)
        there = dict(_there(handle.to_pyarrow_table().to_pylist())) if handle is not None else {}
        changed = sum(there.get(known) != rate for known, rate in rates.items())
        merged = there | dict(rates)
        currencies = tuple(sorted({currency for currency, _ in merged}))
        result = RatesImported(rates=len(rates), changed=changed, currencies=currencies, committed=False)
        if dry_run or (not changed and handle is not None):
            return result
        version = 0 if handle is None else handle.version() + 1
        file = table.write(pa.Table.from_pylist(list(_intervals(merged)), schema=TABLE.schema), {})
        change = Replacement(files=[file], removed=files, transaction=BatchTransaction("currency-rates", version))
        if not table.commit(handle, change):
            raise CommitConflictError
        return msgspec.structs.replace(result, committed=True)

    return commit_with_retry(CURRENCY_RATES, _ATTEMPTS, attempt)


def _there(rows: Iterable[Mapping[str, object]]) -> Iterator[tuple[tuple[str, date], float]]:
    for row in rows:
        yield (row["currency"], row["valid_from"]), row["usd"]  # type: ignore[misc] # columns of TABLE.schema


def _intervals(rates: Rates) -> Iterator[dict[str, object]]:
    """Yield a row for each rate, in order of currency and date."""
    by_currency: defaultdict[str, list[date]] = defaultdict(list)
    for currency, day in sorted(rates):
        by_currency[currency].append(day)
    for currency, days in by_currency.items():
        for day, following in pairwise([*days, _FOR_EVER]):
            yield {"currency": currency, "valid_from": day, "valid_until": following, "usd": rates[currency, day]}
