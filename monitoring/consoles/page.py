"""Converts a dashboard to a console template; styles and charts: `prometheus/consoles/gamelake.lib`."""

import re
from collections.abc import Sequence
from functools import singledispatch
from html import escape

from monitoring.consoles.expressions import (
    formatted,
    graph_link,
    instant_query,
    legend,
    quoted_for_script,
    severity_class,
)
from monitoring.grafana.page import Page, Variable
from monitoring.grafana.panels import Column, Link, Panel, Query, StateTimeline, Table, TimeSeries

# A value from the URL must not end the string literal that it is inserted into.
_CHOICE = '{{{{ ${name} := reReplaceAll "[\\"\\\\\\\\]" "" (or (index .Params "var-{name}") ".+") }}}}'
# Debian's build of Prometheus has no pages of this kind at /alerts and /targets.
LIVE = {
    "alerts": "The alerts that fire or are pending, with their runbooks and dashboards.",
    "targets": "The scrape targets, and why one can't be read.",
}
_RUNBOOK = re.compile(r"\b(runbooks? )(\w+)")


def page(dashboard: Page, all_pages: Sequence[Page]) -> str:
    """The console page of one dashboard, with links to all others."""
    choices = [_CHOICE.format(name=variable.name.lower()) for variable in Variable]
    lines = [*choices, f'{{{{ template "gamelake-head" "{dashboard.title}" }}}}', _menu(all_pages)]
    lines += [f"<h1>{escape(dashboard.title)}</h1>", f"<p>{escape(dashboard.description)}</p>"]
    for row in dashboard.rows:
        lines += [f"<h2>{escape(row.title)}</h2>", '<div class="panels">']
        lines += [_framed(panel) for panel in row.panels]
        lines += ["</div>"]
    return "\n".join([*lines, '{{ template "gamelake-foot" . }}', ""])


def index_page(pages: Sequence[Page], alerts: Sequence[str]) -> str:
    """The index: all pages, and the runbooks of the alerts."""
    lines = ['{{ template "gamelake-head" "Gamelake" }}', "<h1>Gamelake</h1>", "<ul>"]
    lines += [
        f'<li><a href="{each.uid}.html">{escape(each.title)}</a>: {escape(each.description)}</li>' for each in pages
    ]
    lines += [f'<li><a href="{name}.html">{name.capitalize()}</a>: {escape(text)}</li>' for name, text in LIVE.items()]
    lines += ["</ul>", "<h2>Runbooks</h2>", '<ul class="columns">']
    lines += [f'<li><a href="runbooks/{name}.html">{name}</a></li>' for name in alerts]
    return "\n".join([*lines, "</ul>", '{{ template "gamelake-foot" . }}', ""])


def live_page(name: str, all_pages: Sequence[Page]) -> str:
    """A page of `LIVE`, whose script asks Prometheus' API."""
    lines = [f'{{{{ template "gamelake-head" "{name.capitalize()}" }}}}', _menu(all_pages)]
    lines += [f"<h1>{name.capitalize()}</h1>", f"<p>{escape(LIVE[name])}</p>"]
    lines += [f'<table class="live" data-about="{name}"></table>', '{{ template "gamelake-foot" . }}', ""]
    return "\n".join(lines)


def _menu(pages: Sequence[Page]) -> str:
    links = [f'<a href="{each.uid}.html">{escape(each.title)}</a>' for each in pages]
    links += [f'<a href="{name}.html">{name.capitalize()}</a>' for name in LIVE]
    return f"<nav>{' · '.join(links)}</nav>"


def _framed(panel: Panel) -> str:
    link = graph_link([query.expr for query in panel.queries])
    description = _RUNBOOK.sub(r'\1<a href="runbooks/\2.html">\2</a>', escape(panel.description))
    heading = f'<h3><a href="{link}">{escape(panel.title)}</a></h3><p>{description}</p>'
    return f'<section style="grid-column: span {panel.width}">{heading}\n{_body(panel)}\n</section>'


@singledispatch
def _body(panel: Panel) -> str:
    """One line per series: its legend and its current value."""
    return _table(*(_series(query, panel) for query in panel.queries))


@_body.register
def _(panel: TimeSeries) -> str:
    return _curves(panel, panel.soft_max)


@_body.register
def _(panel: StateTimeline) -> str:
    return _curves(panel, 1)


def _curves(panel: TimeSeries | StateTimeline, most: float) -> str:
    curves = "".join(
        f'<i data-expression="{quoted_for_script(query.expr)}" data-legend="{_brackets(query.legend)}"></i>'
        for query in panel.queries
    )
    values = _table(*(_series(query, panel) for query in panel.queries))
    return f'<div class="curves" data-most="{most:g}">{curves}</div>\n{values}'


@_body.register
def _(panel: Table) -> str:
    first, *others = panel.columns
    labels = (panel.label, *panel.more_labels)
    names = "".join(
        f"<th>{escape(name)}</th>" for name in (*map(str.capitalize, labels), *(c.name for c in panel.columns))
    )
    more = "".join(f"<td>{{{{ .Labels.{label} }}}}</td>" for label in panel.more_labels)
    style = severity_class(first.thresholds, first.words)
    value = f'<td class="{style}" data-value="{{{{ .Value }}}}">{formatted(first.unit, first.words)}</td>'
    row = (
        f"<tr><td>{_row_label(panel)}</td>{more}{value}{''.join(_cell(column, panel.label) for column in others)}</tr>"
    )
    position = [*labels, *(column.name for column in panel.columns)].index(panel.sort)
    rows = (
        f'{{{{ range {instant_query(first.expr)} | sortByLabel "{panel.label}" }}}}{_row_variable(panel.label)}{row}'
        f"{{{{ else }}}}{_nothing(panel)}{{{{ end }}}}"
    )
    table = f'<table data-sort="{position}" data-first="{"smallest" if panel.smallest_first else "largest"}">'
    return "\n".join([table, f"<tr>{names}</tr>", rows, "</table>"])


def _row_variable(label: str) -> str:
    """Inside the loop the row's label replaces the variable of the same name."""
    return f"{{{{ ${label} := .Labels.{label} }}}}"


def _row_label(panel: Table) -> str:
    """The row's label, which leads to the first of its links that a console page has."""
    name = f"{{{{ .Labels.{panel.label} }}}}"
    return f'<a href="{_address(panel.links[0], name)}">{name}</a>' if panel.links else name


def _address(link: Link, name: str) -> str:
    if not link.page:
        return f"runbooks/{name}.html"
    return f"{link.page}.html?var-{link.variable}={link.template.format(name)}"


def _cell(column: Column, label: str) -> str:
    """The column's value for the row: queries that have no variable for it are filtered by the row's label."""
    style = severity_class(column.thresholds, column.words)
    value = f'<span class="{style}" data-value="{{{{ .Value }}}}">{formatted(column.unit, column.words)}</span>'
    chosen = f"{{{{ if eq .Labels.{label} ${label} }}}}{value}{{{{ end }}}}"
    return f"<td>{{{{ range {instant_query(column.expr)} }}}}{chosen}{{{{ end }}}}</td>"


def _series(query: Query, panel: Panel) -> str:
    value = formatted(panel.unit, panel.words)
    style = severity_class(panel.thresholds, panel.words)
    row = f'<tr><td class="name">{legend(query.legend)}</td><td class="{style}">{value}</td></tr>'
    return f"{{{{ range {instant_query(query.expr)} }}}}{row}{{{{ else }}}}{_nothing(panel)}{{{{ end }}}}"


def _nothing(panel: Panel) -> str:
    return f'<tr><td class="nothing" colspan="9">{escape(panel.empty)}</td></tr>'


def _table(*rows: str) -> str:
    return "\n".join(["<table>", *rows, "</table>"])


def _brackets(text: str) -> str:
    """A legend for the script, with square brackets: double braces belong to the template."""
    return escape(text.replace("{{", "[[").replace("}}", "]]"))
