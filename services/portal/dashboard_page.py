"""A dashboard as a page: the current values of each panel, and its curves of the last hour."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from services.portal.dashboards import DASHBOARDS, Dashboard, DashboardPanel, ValueStyle, load_dashboards
from services.portal.html import link, page, table
from services.portal.pages import runbook_link
from services.portal.prometheus import Prometheus, Series

_RANGE_SECONDS, _STEP_SECONDS = 3600, 60
_HEIGHT = 20
_RUNBOOK = re.compile(r"\b(runbooks? )(\w+)")


class DashboardPages:
    """The pages of the dashboards in a folder, which Prometheus fills."""

    def __init__(self, folder: Path, prometheus: Prometheus, clock: Callable[[], float] = time.time) -> None:
        self.all = load_dashboards(folder)
        self._prometheus = prometheus
        self._clock = clock

    def page(self, uid: str) -> str:
        """Return the page of a dashboard, with its values as they are now.

        Raises:
            FiguresUnavailableError: Prometheus does not respond.
        """
        dashboard, now = self.all[uid], self._clock()
        moment = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
        parts = [
            f"<h1>{escape(dashboard.title)}</h1>",
            f"<p>{escape(dashboard.description)}</p>",
            _menu(self.all),
            f"<p>As of {moment} UTC. Load the page again for newer values.</p>",
            '<div class="panels">',
        ]
        row = ""
        for panel in dashboard.panels:
            if panel.type == "row":
                row = panel.title
                parts.append(f"<h2>{escape(row)}</h2>")
            else:
                parts.append(self._panel(panel, row, now))
        return page(f"{dashboard.title} - Gamelake", "\n".join([*parts, "</div>"]))

    def _panel(self, panel: DashboardPanel, row: str, now: float) -> str:
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
            columns, rows = ["result"], [[escape(panel.default.no_value)]]
        description = _RUNBOOK.sub(lambda found: found[1] + runbook_link(found[2]), escape(panel.description))
        content = table(panel.title, [escape(each) for each in columns], rows, first_number, f"{row}: {panel.title}")
        return f'<div class="{panel.type}">{content}<p>{description}</p></div>'

    def _rows(self, panel: DashboardPanel, now: float) -> list[list[str]]:
        labels = panel.labels
        values: dict[tuple[str, ...], dict[str, float]] = {}
        for target in panel.targets:
            for sample in self._prometheus.at(now, target.expression):
                names = tuple(sample.labels.get(label, "") for label in labels)
                values.setdefault(names, {})[target.legend_format] = sample.value
        fields = {each.legend_format: panel.field(each.legend_format) for each in panel.targets}
        return [
            [_name(panel, names[0]), *map(escape, names[1:])]
            + [_cell(field, found[column]) if column in found else "" for column, field in fields.items()]
            for names, found in sorted(values.items(), key=lambda row: _place(panel, *row))
        ]

    def _values(self, panel: DashboardPanel, now: float) -> list[list[str]]:
        return [
            [escape(target.legend(sample.labels)), _cell(panel.default, sample.value)]
            for target in panel.targets
            for sample in self._prometheus.at(now, target.expression)
        ]

    def _curves(self, panel: DashboardPanel, now: float) -> list[list[str]]:
        start, field = now - _RANGE_SECONDS, panel.default
        found = [
            (target.legend(series.labels), series)
            for target in panel.targets
            for series in self._prometheus.over_time(target.expression, start, now, _STEP_SECONDS)
        ]
        most = max([field.custom.axis_soft_max, *(value for _, series in found for _, value in series.points)])
        return [
            [
                escape(name),
                _curve(series, field, start, most),
                # A series that has ended has no value now.
                _cell(field, series.points[-1][1]) if series.points[-1][0] > now - _STEP_SECONDS else "",
            ]
            for name, series in found
        ]


def _menu(dashboards: Mapping[str, Dashboard]) -> str:
    links = (link(f"{DASHBOARDS}{each.uid}", each.title) for each in dashboards.values())
    return f'<nav aria-label="Dashboards">{" · ".join(links)}</nav>'


def _place(panel: DashboardPanel, names: Sequence[str], values: Mapping[str, float]) -> tuple[bool, float | str]:
    """Return the key by which the row is sorted; rows without a value in that column are last."""
    sort = panel.options.sort_by[0]
    if sort.display_name in panel.labels:
        return False, names[panel.labels.index(sort.display_name)]
    value = values.get(sort.display_name)
    return (True, 0) if value is None else (False, -value if sort.desc else value)


def _name(panel: DashboardPanel, name: str) -> str:
    """Return the name of a table's row; an alert's leads to its runbook."""
    return runbook_link(name) if panel.labels[0] == "alertname" else escape(name)


def _cell(field: ValueStyle, value: float) -> str:
    text = escape(field.text(value))
    return f'<span class="bad">{text}</span>' if field.is_bad(value) else text


def _curve(series: Series, field: ValueStyle, start: float, most: float) -> str:
    values = [value for _, value in series.points]
    name = escape(f"{field.text(min(values))} to {field.text(max(values))}")
    return (
        f'<svg class="curve" role="img" aria-label="{name}" viewBox="0 -1 {_RANGE_SECONDS} {_HEIGHT + 2}" '
        f'preserveAspectRatio="none"><path d="{"".join(_strokes(series, start, most))}"></path></svg>'
    )


def _strokes(series: Series, start: float, most: float) -> Iterator[str]:
    """Yield the path's commands; where values are missing there is a gap."""
    before = 0.0
    for moment, value in series.points:
        command = "L" if moment - before < 2 * _STEP_SECONDS else "M"
        yield f"{command}{moment - start:.0f} {_HEIGHT * (1 - value / most):.1f}"
        before = moment
