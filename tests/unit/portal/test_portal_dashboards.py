"""The portal rates a value as Grafana does, and writes it with its unit; times are in words."""

import pytest

from monitoring.grafana.files import GENERATED
from services.portal.dashboards import DashboardPanel, ValueStyle, formatted, load_dashboards

DASHBOARDS = load_dashboards(GENERATED)
PANELS = [panel for each in DASHBOARDS.values() for panel in each.panels]


def panel(title: str) -> DashboardPanel:
    return next(each for each in PANELS if each.title == title)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "0.0123 s"),
        (100, "dtdhms", "1 min 40 s"),
        (93_784, "dtdhms", "1 d 2 h"),
        (0.125, "percentunit", "12.5%"),
        (512, "bytes", "512 B"),
        (1.5 * 1024**2, "binBps", "1.5 MiB/s"),
        (3 * 1024**4, "bytes", "3.0 TiB"),
        (1_234_567, "short", "1,234,567"),
        (1.23456, "recps", "1.23/s"),
        (3, "none", "3"),
    ],
)
def test_a_value_is_written_with_its_unit(value: float, unit: str, text: str) -> None:
    assert formatted(value, unit) == text


def test_an_unknown_unit_is_an_error() -> None:
    with pytest.raises(KeyError):
        formatted(1, "furlongs")


def test_the_portal_knows_every_unit_of_the_dashboards() -> None:
    columns = [each.field(target.legend_format) for each in PANELS for target in each.targets if each.type == "table"]

    assert all(formatted(1, field.unit) for field in [*columns, *(each.default for each in PANELS)])


@pytest.mark.parametrize(("value", "is_bad"), [(299, False), (300, True)])
def test_a_value_is_bad_from_its_limit_on(value: float, is_bad: bool) -> None:
    assert panel("Queries").field("Behind").is_bad(value) is is_bad


@pytest.mark.parametrize(("value", "is_bad"), [(14_399, True), (14_400, False)])
def test_a_value_that_should_be_large_is_bad_below_its_limit(value: float, is_bad: bool) -> None:
    assert panel("Queries").field("Deleted in").is_bad(value) is is_bad


@pytest.mark.parametrize(
    ("column", "value", "text", "is_bad"),
    [("Caught up in", -1, "never", True), ("Deleted in", -1, "never", False), ("Trend", 1, "grows", True)],
)
def test_a_word_stands_for_its_value_and_has_a_rating_of_its_own(
    column: str, value: float, text: str, is_bad: bool
) -> None:
    field = panel("Queries").field(column)

    assert (field.text(value), field.is_bad(value)) == (text, is_bad)


def test_a_value_without_limits_is_not_bad() -> None:
    assert not ValueStyle().is_bad(1e9)


def test_a_query_selects_everything_that_a_variable_can() -> None:
    for each in PANELS:
        for target in each.targets:
            assert "$" not in target.expression


def test_a_legend_names_labels_of_the_series() -> None:
    (target,) = panel("Records behind per partition").targets

    assert target.legend({"query": "live_ops", "statistic": "max"}) == "live_ops max"


def test_the_labels_of_a_table_are_its_first_columns() -> None:
    assert panel("Queries").labels == ["query"]
    assert panel("Alerts that fire").labels == ["alertname", "severity", "query", "game", "table", "job"]
