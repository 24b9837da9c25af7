"""A dashboard as a console template of Prometheus; the look and the curves are in `gamelake.lib` beside the pages."""

from collections.abc import Sequence
from functools import singledispatch
from html import escape

from monitoring.consoles.expressions import (
    figure_of,
    graph_link,
    instant_query,
    legend,
    mood_of,
    quoted_for_script,
)
from monitoring.grafana.page import Page, Variable
from monitoring.grafana.panels import Ask, Column, Course, Figure, Panel, Rows

# A reader's choice must not end the string that it is put into.
_CHOICE = '{{{{ ${name} := reReplaceAll "[\\"\\\\\\\\]" "" (or (index .Params "var-{name}") ".+") }}}}'
_NOTHING = '<tr><td class="nothing" colspan="9">no data</td></tr>'


def page(dashboard: Page, all_of_them: Sequence[Page]) -> str:
    """The page of one dashboard."""
    choices = [_CHOICE.format(name=variable.name.lower()) for variable in Variable]
    lines = [*choices, f'{{{{ template "gamelake-head" "{dashboard.title}" }}}}', _menu(all_of_them)]
    lines += [f"<h1>{escape(dashboard.title)}</h1>", f"<p>{escape(dashboard.description)}</p>"]
    for row in dashboard.rows:
        lines += [f"<h2>{escape(row.title)}</h2>", '<div class="panels">']
        lines += [_framed(panel) for panel in row.panels]
        lines += ["</div>"]
    return "\n".join([*lines, '{{ template "gamelake-foot" . }}', ""])


def index_page(pages: Sequence[Page]) -> str:
    """The list of the pages."""
    lines = ['{{ template "gamelake-head" "Gamelake" }}', "<h1>Gamelake</h1>", "<ul>"]
    lines += [
        f'<li><a href="{each.uid}.html">{escape(each.title)}</a>: {escape(each.description)}</li>' for each in pages
    ]
    return "\n".join([*lines, "</ul>", '{{ template "gamelake-foot" . }}', ""])


def _menu(pages: Sequence[Page]) -> str:
    links = [f'<a href="{each.uid}.html">{escape(each.title)}</a>' for each in pages]
    return f'<nav>{" · ".join(links)} · <a href="/alerts">Alerts</a></nav>'


def _framed(panel: Panel) -> str:
    link = graph_link([ask.expr for ask in panel.asks])
    heading = f'<h3><a href="{link}">{escape(panel.title)}</a></h3><p>{escape(panel.description)}</p>'
    return f'<section style="grid-column: span {panel.width}">{heading}\n{_body(panel)}\n</section>'


@singledispatch
def _body(panel: Panel) -> str:
    """A line per series: its name and its value now."""
    return _table(*(_series(ask, panel) for ask in panel.asks))


@_body.register
def _(panel: Course) -> str:
    curves = "".join(
        f'<i data-expression="{quoted_for_script(ask.expr)}" data-legend="{_brackets(ask.legend)}"></i>'
        for ask in panel.asks
    )
    return f'<div class="curves">{curves}</div>\n{_table(*(_series(ask, panel) for ask in panel.asks))}'


@_body.register
def _(panel: Rows) -> str:
    first, *others = panel.columns
    names = "".join(f"<th>{escape(column.name)}</th>" for column in panel.columns)
    heading = f"<tr><th>{escape(panel.label.capitalize())}</th>{names}</tr>"
    cells = "".join(_cell(column) for column in others)
    row = f"<tr><td>{{{{ .Labels.{panel.label} }}}}</td><td>{figure_of(first.unit)}</td>{cells}</tr>"
    # Inside the loop the row's own label takes the place of the reader's choice.
    chosen = f"{{{{ ${panel.label} := .Labels.{panel.label} }}}}"
    return _table(
        heading,
        f'{{{{ range {instant_query(first.expr)} | sortByLabel "{panel.label}" }}}}{chosen}{row}'
        f"{{{{ else }}}}{_NOTHING}{{{{ end }}}}",
    )


def _cell(column: Column) -> str:
    return f"<td>{{{{ range {instant_query(column.expr)} }}}}{figure_of(column.unit)}{{{{ end }}}}</td>"


def _series(ask: Ask, panel: Panel) -> str:
    value = figure_of(panel.unit, panel.words if isinstance(panel, Figure) else ())
    row = f'<tr><td class="name">{legend(ask.legend)}</td><td class="{mood_of(panel.limits)}">{value}</td></tr>'
    return f"{{{{ range {instant_query(ask.expr)} }}}}{row}{{{{ else }}}}{_NOTHING}{{{{ end }}}}"


def _table(*rows: str) -> str:
    return "\n".join(["<table>", *rows, "</table>"])


def _brackets(text: str) -> str:
    """A legend for the script: two braces would be taken for the template's."""
    return escape(text.replace("{{", "[[").replace("}}", "]]"))
