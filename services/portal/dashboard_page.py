"""A dashboard as a page: the current values of each panel, and its curves of the last hour."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup, escape

from services.portal.dashboards import DASHBOARDS, DashboardPanel, ValueStyle, load_dashboards
from services.portal.docs import ALERT_RUNBOOKS
from services.portal.prometheus import Prometheus, Series
from services.portal.templates import PortalTemplates

_RANGE_SECONDS, _STEP_SECONDS = 3600, 60
_HEIGHT = 20
_RUNBOOK = re.compile(r"\b(runbooks? )(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelView:
    """A panel as the page shows it; one with a heading is only that."""

    heading: str = ""
    style: str = ""
    title: str = ""
    region: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | Markup]] = ()
    numbers: range = range(0)
    description: str = ""


class DashboardPages:
    """The pages of the dashboards in a folder, which Prometheus fills."""

    def __init__(self, folder: Path, prometheus: Prometheus, clock: Callable[[], float] = time.time) -> None:
        self.all = load_dashboards(folder)
        self._prometheus = prometheus
        self._clock = clock

    def page(self, uid: str, templates: PortalTemplates | None = None) -> str:
        """Return the page of a dashboard, with its values as they are now.

        Raises:
            FiguresUnavailableError: Prometheus does not respond.
        """
        dashboard, now = self.all[uid], self._clock()
        panels: list[PanelView] = []
        row = ""
        for panel in dashboard.panels:
            if panel.type == "row":
                row = panel.title
                panels.append(PanelView(heading=row))
            else:
                panels.append(self._panel(panel, row, now))
        return (templates or PortalTemplates()).page(
            "dashboard.html",
            f"{DASHBOARDS}{uid}",
            dashboard=dashboard,
            dashboards=list(self.all.values()),
            address=DASHBOARDS,
            panels=panels,
            now=datetime.fromtimestamp(now, UTC),
        )

    def _panel(self, panel: DashboardPanel, row: str, now: float) -> PanelView:
        if panel.type == "table":
            columns, first_number = [*panel.labels, *(each.legend_format for each in panel.targets)], len(panel.labels)
            rows = self._rows(panel, now)
        elif panel.is_over_time:
            columns, first_number = ["series", "last hour", "now"], 2
            rows = self._curves(panel, now)
        else:
            columns, first_number = ["series", "now"], 1
            rows = self._values(panel, now)
        if not rows:
            columns, rows = ["result"], [[panel.default.no_value]]
        return PanelView(
            style=panel.type,
            title=panel.title,
            region=f"{row}: {panel.title}",
            columns=columns,
            rows=rows,
            numbers=range(first_number, len(columns)),
            description=_with_runbooks(panel.description),
        )

    def _rows(self, panel: DashboardPanel, now: float) -> list[list[str | Markup]]:
        labels = panel.labels
        values: dict[tuple[str, ...], dict[str, float]] = {}
        for target in panel.targets:
            for sample in self._prometheus.at(now, target.expression):
                names = tuple(sample.labels.get(label, "") for label in labels)
                values.setdefault(names, {})[target.legend_format] = sample.value
        fields = {each.legend_format: panel.field(each.legend_format) for each in panel.targets}
        return [
            [_name(panel, names[0]), *names[1:]]
            + [_cell(field, found[column]) if column in found else "" for column, field in fields.items()]
            for names, found in sorted(values.items(), key=lambda row: _place(panel, *row))
        ]

    def _values(self, panel: DashboardPanel, now: float) -> list[list[str | Markup]]:
        return [
            [target.legend(sample.labels), _cell(panel.default, sample.value)]
            for target in panel.targets
            for sample in self._prometheus.at(now, target.expression)
        ]

    def _curves(self, panel: DashboardPanel, now: float) -> list[list[str | Markup]]:
        start, field = now - _RANGE_SECONDS, panel.default
        found = [
            (target.legend(series.labels), series)
            for target in panel.targets
            for series in self._prometheus.over_time(target.expression, start, now, _STEP_SECONDS)
        ]
        most = max([field.custom.axis_soft_max, *(value for _, series in found for _, value in series.points)])
        return [
            [
                name,
                _curve(series, field, start, most),
                # A series that has ended has no value now.
                _cell(field, series.points[-1][1]) if series.points[-1][0] > now - _STEP_SECONDS else "",
            ]
            for name, series in found
        ]


def _with_runbooks(description: str) -> Markup:
    """Return the text, with each name of a runbook as a link to it."""
    parts, end = [], 0
    for found in _RUNBOOK.finditer(description):
        parts += [escape(description[end : found.end(1)]), _runbook_link(found[2])]
        end = found.end()
    return Markup("").join([*parts, escape(description[end:])])


def _runbook_link(alert: str) -> Markup:
    return Markup('<a href="{}{}/">{}</a>').format(ALERT_RUNBOOKS, alert, alert)


def _place(panel: DashboardPanel, names: Sequence[str], values: Mapping[str, float]) -> tuple[bool, float | str]:
    """Return the key by which the row is sorted; rows without a value in that column are last."""
    sort = panel.options.sort_by[0]
    if sort.display_name in panel.labels:
        return False, names[panel.labels.index(sort.display_name)]
    value = values.get(sort.display_name)
    return (True, 0) if value is None else (False, -value if sort.desc else value)


def _name(panel: DashboardPanel, name: str) -> str | Markup:
    """Return the name of a table's row; an alert's leads to its runbook."""
    return _runbook_link(name) if panel.labels[0] == "alertname" else name


def _cell(field: ValueStyle, value: float) -> str | Markup:
    text = field.text(value)
    return Markup('<span class="bad">{}</span>').format(text) if field.is_bad(value) else text


def _curve(series: Series, field: ValueStyle, start: float, most: float) -> Markup:
    values = [value for _, value in series.points]
    return Markup(
        '<svg class="curve" role="img" aria-label="{}" viewBox="0 -1 {} {}" preserveAspectRatio="none">'
        '<path d="{}"></path></svg>'
    ).format(
        f"{field.text(min(values))} to {field.text(max(values))}",
        _RANGE_SECONDS,
        _HEIGHT + 2,
        "".join(_strokes(series, start, most)),
    )


def _strokes(series: Series, start: float, most: float) -> Iterator[str]:
    """Yield the path's commands; where values are missing there is a gap."""
    before = 0.0
    for moment, value in series.points:
        command = "L" if moment - before < 2 * _STEP_SECONDS else "M"
        yield f"{command}{moment - start:.0f} {_HEIGHT * (1 - value / most):.1f}"
        before = moment
