"""Converts a dashboard to a console template; styles and charts: `prometheus/consoles/gamelake.lib`."""

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
from monitoring.grafana.panels import Column, Panel, Query, Stat, Table, TimeSeries

# A value from the URL must not end the string literal that it is inserted into.
_CHOICE = '{{{{ ${name} := reReplaceAll "[\\"\\\\\\\\]" "" (or (index .Params "var-{name}") ".+") }}}}'
_NOTHING = '<tr><td class="nothing" colspan="9">no data</td></tr>'


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


def index_page(pages: Sequence[Page]) -> str:
    """The index: a list of all pages."""
    lines = ['{{ template "gamelake-head" "Gamelake" }}', "<h1>Gamelake</h1>", "<ul>"]
    lines += [
        f'<li><a href="{each.uid}.html">{escape(each.title)}</a>: {escape(each.description)}</li>' for each in pages
    ]
    return "\n".join([*lines, "</ul>", '{{ template "gamelake-foot" . }}', ""])


def _menu(pages: Sequence[Page]) -> str:
    links = [f'<a href="{each.uid}.html">{escape(each.title)}</a>' for each in pages]
    return f'<nav>{" · ".join(links)} · <a href="/alerts">Alerts</a></nav>'


def _framed(panel: Panel) -> str:
    link = graph_link([query.expr for query in panel.queries])
    heading = f'<h3><a href="{link}">{escape(panel.title)}</a></h3><p>{escape(panel.description)}</p>'
    return f'<section style="grid-column: span {panel.width}">{heading}\n{_body(panel)}\n</section>'


@singledispatch
def _body(panel: Panel) -> str:
    """One line per series: its legend and its current value."""
    return _table(*(_series(query, panel) for query in panel.queries))


@_body.register
def _(panel: TimeSeries) -> str:
    curves = "".join(
        f'<i data-expression="{quoted_for_script(query.expr)}" data-legend="{_brackets(query.legend)}"></i>'
        for query in panel.queries
    )
    return f'<div class="curves">{curves}</div>\n{_table(*(_series(query, panel) for query in panel.queries))}'


@_body.register
def _(panel: Table) -> str:
    first, *others = panel.columns
    names = "".join(f"<th>{escape(column.name)}</th>" for column in panel.columns)
    heading = f"<tr><th>{escape(panel.label.capitalize())}</th>{names}</tr>"
    cells = "".join(_cell(column) for column in others)
    row = f"<tr><td>{{{{ .Labels.{panel.label} }}}}</td><td>{formatted(first.unit)}</td>{cells}</tr>"
    # Inside the loop the row's label replaces the variable of the same name.
    chosen = f"{{{{ ${panel.label} := .Labels.{panel.label} }}}}"
    return _table(
        heading,
        f'{{{{ range {instant_query(first.expr)} | sortByLabel "{panel.label}" }}}}{chosen}{row}'
        f"{{{{ else }}}}{_NOTHING}{{{{ end }}}}",
    )


def _cell(column: Column) -> str:
    return f"<td>{{{{ range {instant_query(column.expr)} }}}}{formatted(column.unit)}{{{{ end }}}}</td>"


def _series(query: Query, panel: Panel) -> str:
    value = formatted(panel.unit, panel.words if isinstance(panel, Stat) else ())
    style = severity_class(panel.thresholds)
    row = f'<tr><td class="name">{legend(query.legend)}</td><td class="{style}">{value}</td></tr>'
    return f"{{{{ range {instant_query(query.expr)} }}}}{row}{{{{ else }}}}{_NOTHING}{{{{ end }}}}"


def _table(*rows: str) -> str:
    return "\n".join(["<table>", *rows, "</table>"])


def _brackets(text: str) -> str:
    """A legend for the script, with square brackets: double braces belong to the template."""
    return escape(text.replace("{{", "[[").replace("}}", "]]"))
