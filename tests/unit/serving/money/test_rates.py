"""Exchange rates: files are imported again and again, and each day of each currency has at most one rate."""

from datetime import date, timedelta
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.delta.listing import has_log
from gamelake.delta.tables import open_table
from gamelake.model.errors import ContractError
from gamelake.model.naming import CURRENCY_RATES
from gamelake.objects.store import Location, Store
from gamelake.serving.money.rates import import_rates, import_shipped, read_rates
from tests.unit.properties import examples

_DAY = date(2026, 1, 1)
_RATES = st.dictionaries(
    st.tuples(st.sampled_from(["EUR", "JPY"]), st.integers(0, 9).map(lambda days: _DAY + timedelta(days=days))),
    st.floats(1e-6, 1e6),
    max_size=8,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=f"file://{tmp_path}"))


def _valid(store: Store, currency: str, day: date) -> list[float]:
    """The rates of a currency that are valid on a day."""
    rows = open_table(store.location, CURRENCY_RATES).to_pyarrow_table().to_pylist()
    of_currency = [row for row in rows if row["currency"] == currency]
    return [row["usd"] for row in of_currency if row["valid_from"] <= day < row["valid_until"]]


@examples(20)
@given(imports=st.lists(_RATES, min_size=1, max_size=4))
def test_a_day_has_the_newest_rate_up_to_it_after_any_imports(
    tmp_path_factory: pytest.TempPathFactory, imports: list[dict[tuple[str, date], float]]
) -> None:
    store = Store(Location(uri=f"file://{tmp_path_factory.mktemp('rates')}"))
    known: dict[tuple[str, date], float] = {}
    for rates in imports:
        import_rates(store, rates)
        known |= rates

    for currency in ("EUR", "JPY"):
        for day in (_DAY + timedelta(days=days) for days in range(-1, 400, 5)):
            dates = [each for name, each in known if name == currency and each <= day]
            assert _valid(store, currency, day) == ([known[currency, max(dates)]] if dates else [])


def test_the_same_file_again_changes_nothing(store: Store) -> None:
    rates = {("EUR", _DAY): 1.1}
    first = import_rates(store, rates)

    again = import_rates(store, rates)

    assert (first.committed, first.changed) == (True, 1)
    assert (again.committed, again.changed, again.rates) == (False, 0, 1)
    assert open_table(store.location, CURRENCY_RATES).version() == 0


def test_a_dry_run_says_what_would_change_and_writes_nothing(store: Store) -> None:
    done = import_rates(store, {("EUR", _DAY): 1.1}, dry_run=True)

    assert (done.changed, done.currencies, done.committed) == (1, ("EUR",), False)
    assert not has_log(store, CURRENCY_RATES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rates.csv:1: the first line must be date,currency,usd"),
        ("day,currency,usd\n", "rates.csv:1: the first line must be"),
        (
            "date,currency,usd\n2026-01-01,EUR,1\n2026-13-01,EUR,1\n",
            "rates.csv:3: write a day, a currency and a number",
        ),
        ("date,currency,usd\n2026-01-01,EUR\n", "rates.csv:2: write a day"),
        ("date,currency,usd\n2026-01-01,euro,1\n", "rates.csv:2: 'euro' is not a currency of ISO 4217"),
        ("date,currency,usd\n2026-01-01,EUR,0\n", "rates.csv:2: the rate 0 is not a number above 0"),
        ("date,currency,usd\n2026-01-01,EUR,nan\n", "rates.csv:2: the rate nan is not a number above 0"),
    ],
)
def test_a_wrong_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        read_rates(StringIO(text), "rates.csv")


def test_the_byte_order_mark_of_a_spreadsheet_is_not_part_of_the_header() -> None:
    assert read_rates(StringIO("\ufeffdate,currency,usd\n2026-11-30,EUR,1.09\n"), "rates.csv")


def test_the_shipped_rates_are_imported_once(store: Store) -> None:
    import_shipped(store, Path("contracts/rates.csv"))
    import_rates(store, {("EUR", _DAY): 2.0})

    import_shipped(store, Path("contracts/rates.csv"))

    assert _valid(store, "EUR", _DAY) == [2.0]
    assert len(_valid(store, "EUR", _DAY - timedelta(days=1))) == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"date,currency,usd\n2026-01-01,EUR,much\n"])
def test_a_missing_or_wrong_file_of_rates_stops_nothing(store: Store, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "rates.csv"
    if content is not None:
        file.write_bytes(content)

    import_shipped(store, file)

    assert not has_log(store, CURRENCY_RATES)
