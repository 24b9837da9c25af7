"""The dashboards that Grafana reads, as the portal needs them: queries, and how a value is written and rated."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from services.portal.display import duration

LAG = "gamelake-lag"
# Grafana's path, so that its links lead to the portal's page, too.
DASHBOARDS = "/d/"

_BAD = "red"
_LABEL = re.compile(r"{{(\w+)}}")
_VARIABLE = re.compile(r"\$(query|game|table|title)\b")
_MINUTE, _KIBI = 60, 1024.0
_SUFFIXES = {
    "none": "",
    "short": "",
    "currencyUSD": " $",
    "mbytes": " MiB",
    "opm": "/min",
    "recps": "/s",
    "reqps": "/s",
    "rowsps": "/s",
}


class _Step(msgspec.Struct):
    color: str
    value: float | None = None


class _Thresholds(msgspec.Struct):
    steps: list[_Step] = []


class _Word(msgspec.Struct):
    text: str
    color: str


class _Mapping(msgspec.Struct):
    options: dict[str, _Word] = {}


class _Custom(msgspec.Struct, rename="camel"):
    axis_soft_max: float = 1.0


class ValueStyle(msgspec.Struct, rename="camel"):
    """The style of values; `no_value` stands for no result."""

    unit: str = "none"
    mappings: list[_Mapping] = []
    thresholds: _Thresholds = msgspec.field(default_factory=_Thresholds)
    no_value: str = "no data"
    custom: _Custom = msgspec.field(default_factory=_Custom)

    def text(self, value: float) -> str:
        """Return the value with its unit, or the word that stands for it."""
        word = self._word(value)
        return formatted(value, self.unit) if word is None else word.text

    def is_bad(self, value: float) -> bool:
        """Return True if Grafana shows the value in red."""
        word = self._word(value)
        if word is not None:
            return word.color == _BAD
        reached = [step.color for step in self.thresholds.steps if step.value is None or step.value <= value]
        return reached[-1:] == [_BAD]

    def _word(self, value: float) -> _Word | None:
        return next((each.options[f"{value:g}"] for each in self.mappings if f"{value:g}" in each.options), None)


class _Property(msgspec.Struct):
    id: str
    value: object


class _Matcher(msgspec.Struct):
    options: str


class _Override(msgspec.Struct):
    matcher: _Matcher
    properties: list[_Property]


class _FieldConfig(msgspec.Struct):
    defaults: ValueStyle = msgspec.field(default_factory=ValueStyle)
    overrides: list[_Override] = []


class _Order(msgspec.Struct, rename="camel"):
    index_by_name: dict[str, int] = {}
    rename_by_name: dict[str, str] = {}


class _Transformation(msgspec.Struct):
    options: _Order


class _Sort(msgspec.Struct, rename="camel"):
    display_name: str
    desc: bool


class _Options(msgspec.Struct, rename="camel"):
    sort_by: list[_Sort] = []


class Target(msgspec.Struct, rename="camel"):
    """A query, and the legend of its series; for a table the name of its column."""

    expr: str
    legend_format: str

    @property
    def expression(self) -> str:
        """The query of everything that the dashboard's variables can select, over the last hour."""
        text = self.expr.replace("$__rate_interval", "1m").replace("$__range", "1h")
        return _VARIABLE.sub(".+", text)

    def legend(self, labels: Mapping[str, str]) -> str:
        """Return the name of a series."""
        return _LABEL.sub(lambda label: labels.get(label[1], ""), self.legend_format).strip()


class DashboardPanel(msgspec.Struct, rename="camel"):
    """A panel; one of the type `row` is the heading of those that follow it."""

    type: str
    title: str
    description: str = ""
    targets: list[Target] = []
    field_config: _FieldConfig = msgspec.field(default_factory=_FieldConfig)
    transformations: list[_Transformation] = []
    options: _Options = msgspec.field(default_factory=_Options)

    @property
    def is_over_time(self) -> bool:
        """True if the panel shows values over time, not only the current ones."""
        return self.type in {"timeseries", "state-timeline"}

    @property
    def labels(self) -> list[str]:
        """The labels that a table has as columns; the first names the row."""
        order = self.transformations[-1].options
        return sorted(order.index_by_name.keys() - order.rename_by_name.keys(), key=order.index_by_name.__getitem__)

    @property
    def default(self) -> ValueStyle:
        """The style of values, except in the columns of a table."""
        return self.field_config.defaults

    def field(self, column: str) -> ValueStyle:
        """Return the style of a column of a table."""
        properties = (each.properties for each in self.field_config.overrides if each.matcher.options == column)
        return msgspec.convert({each.id: each.value for given in properties for each in given}, ValueStyle)


class Dashboard(msgspec.Struct):
    """A dashboard."""

    uid: str
    title: str
    description: str
    panels: list[DashboardPanel]


def load_dashboards(folder: Path) -> Mapping[str, Dashboard]:
    """Return the dashboards in a folder by their uid."""
    found = (msgspec.json.decode(path.read_bytes(), type=Dashboard) for path in sorted(folder.glob("*.json")))
    return {each.uid: each for each in found}


def formatted(value: float, unit: str) -> str:
    """Return a finite value with a unit of Grafana's.

    Raises:
        KeyError: the portal does not know the unit.
    """
    if unit in {"s", "dtdhms"}:
        return f"{value:.3g} s" if abs(value) < _MINUTE else duration(value)
    if unit == "percentunit":
        return f"{value:.1%}"
    if unit in {"bytes", "binBps"}:
        return _binary(value) + ("/s" if unit == "binBps" else "")
    return (f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}") + _SUFFIXES[unit]  # noqa: PLR2004 # three digits


def _binary(value: float) -> str:
    for prefix in ("", "Ki", "Mi", "Gi"):
        if abs(value) < _KIBI:
            return f"{value:.3g} {prefix}B"
        value /= _KIBI
    return f"{value:,.1f} TiB"
