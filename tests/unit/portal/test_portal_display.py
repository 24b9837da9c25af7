"""Values are written for people: separators, percent signs, times in words; identifiers stay as they are."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.portal.display import NO_VALUE, ColumnKind, amount, duration, money, percent, short_money, style_of, text
from tests.unit.properties import examples

UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
FINITE = st.floats(-1e12, 1e12, allow_nan=False)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (2.25, "2.2 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (1_067.8, "17 min 48 s"),
        (3_600, "1 h"),
        (93_784, "1 d 2 h"),
        (-90, "-1 min 30 s"),
        (None, "unknown"),
        (8_640_000_000, "100,000 d"),
    ],
)
def test_a_time_is_in_words(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@examples(100)
@given(st.floats(10, 1e9))
def test_the_words_of_a_time_say_it_to_the_smaller_unit(seconds: float) -> None:
    parts = re.findall(r"([\d,]+) (\w+)", duration(seconds))

    said = sum(int(count.replace(",", "")) * UNITS[unit] for count, unit in parts)
    smallest = (
        UNITS[parts[-1][1]] if len(parts) > 1 else UNITS[{"d": "h", "h": "min", "min": "s"}.get(parts[0][1], "s")]
    )
    assert abs(said - seconds) <= smallest
    assert len(parts) <= 2


@examples(100)
@given(st.integers(-(10**15), 10**15))
def test_a_whole_number_keeps_its_digits_between_its_separators(value: int) -> None:
    written = amount(value)

    assert int(written.replace(",", "")) == value
    assert re.fullmatch(r"-?\d{1,3}(,\d{3})*", written)


@examples(100)
@given(FINITE)
def test_an_amount_keeps_three_digits(value: float) -> None:
    assert float(amount(value).replace(",", "")) == pytest.approx(value, rel=0.006, abs=1e-9)


@examples(100)
@given(st.floats(0, 1, allow_nan=False))
def test_a_share_is_a_percentage(share: float) -> None:
    assert percent(share).endswith("%")
    assert float(percent(share)[:-1]) == pytest.approx(share * 100, abs=0.051)


@pytest.mark.parametrize(
    ("value", "long", "short"),
    [
        (0, "$0.00", "$0.00"),
        (1234.5, "$1,234.50", "$1,234"),
        (-2, "-$2.00", "-$2.00"),
        (Decimal("99.99"), "$99.99", "$99.99"),
    ],
)
def test_money_has_its_sign_its_separators_and_its_cents(value: float | Decimal, long: str, short: str) -> None:
    assert (money(value), short_money(value)) == (long, short)


@pytest.mark.parametrize(
    ("name", "values", "kind", "first"),
    [
        ("gamer_id", (123456789, 5), ColumnKind.IDENTIFIER, "123456789"),
        ("gamer_id", ("a1", "b2"), ColumnKind.TEXT, "a1"),
        ("product_id", (1001,), ColumnKind.IDENTIFIER, "1001"),
        ("level", (1200,), ColumnKind.IDENTIFIER, "1200"),
        ("version", (1234,), ColumnKind.IDENTIFIER, "1234"),
        ("hour_of_day", (7,), ColumnKind.IDENTIFIER, "7"),
        ("players", (12345, None), ColumnKind.NUMBER, "12,345"),
        ("day_7_share", (0.125,), ColumnKind.SHARE, "12.5%"),
        ("share_of_whales", (1.0,), ColumnKind.SHARE, "100.0%"),
        ("bookings_change", (-0.25,), ColumnKind.SHARE, "-25.0%"),
        ("bookings_of_whales", (Decimal("1234.5"),), ColumnKind.MONEY, "$1,234.50"),
        ("arpdau", (0.5,), ColumnKind.MONEY, "$0.50"),
        ("newest_event_seconds_ago", (1067.8,), ColumnKind.TIME, "17 min 48 s"),
        ("minutes_on_average", (1.5,), ColumnKind.TIME, "1 min 30 s"),
        ("devices_more_than_a_minute_off", (4,), ColumnKind.NUMBER, "4"),
        ("players", (float("nan"),), ColumnKind.NUMBER, NO_VALUE),
        ("is_provisional", (True,), ColumnKind.TEXT, "yes"),
        ("share", (None,), ColumnKind.TEXT, NO_VALUE),
    ],
)
def test_a_column_is_written_by_its_name_and_its_values(
    name: str, values: tuple[object, ...], kind: ColumnKind, first: str
) -> None:
    style = style_of(name, values)

    assert (style.kind, style.text(values[0])) == (kind, first)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, NO_VALUE),
        (False, "no"),
        (date(2026, 11, 30), "2026-11-30"),
        (datetime(2026, 11, 30, 14, tzinfo=UTC), "2026-11-30 14:00"),
        ("2026-11-30T14:00:05.123456+00:00", "2026-11-30 14:00:05"),
        ("2026-11-30 14:00:00", "2026-11-30 14:00"),
        ("x" * 1000, "x" * 200 + "…"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_other_values_are_text(value: object, written: str) -> None:
    assert text(value) == written


@examples(100)
@given(st.text())
def test_a_text_that_is_not_a_time_is_unchanged_or_cut(value: str) -> None:
    written = text(value)

    assert written == value or len(value) > 200 or re.match(r"\d{4}-\d\d-\d\d[T ]", value)
