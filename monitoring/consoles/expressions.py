"""Converts queries, legends and units to the syntax of console templates."""

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from grafana_foundation_sdk.models import units

from monitoring.grafana.panels import DURATION, Thresholds, Word

# Four times the longest scrape interval, like Grafana's $__rate_interval.
_RATE_INTERVAL = "1m"
# The range of a console page's curves.
_RANGE = "1h"
_CHOICE = re.compile(r"\$(query|game|table|title)")
_TAKEN = r"{{ $\1 }}"
_LABEL = re.compile(r"{{(\w+)}}")

_PLAIN = "humanize"
_FORMATS = {
    units.NoUnit: (_PLAIN, ""),
    units.Short: (_PLAIN, ""),
    units.Seconds: ("humanizeDuration", ""),
    DURATION: ("humanizeDuration", ""),
    units.Dollars: (_PLAIN, " $"),
    units.PercentUnit: ("humanizePercentage", ""),
    units.BytesIEC: ("humanize1024", "B"),
    units.BytesPerSecondIEC: ("humanize1024", "B/s"),
    units.Mebibytes: (_PLAIN, " MiB"),
    units.OpsPerMinute: (_PLAIN, "/min"),
    units.RecordsPerSecond: (_PLAIN, "/s"),
    units.RowsPerSecond: (_PLAIN, "/s"),
    units.RequestsPerSecond: (_PLAIN, "/s"),
}


def instant_query(expression: str) -> str:
    """The template call that runs the query; dashboard variables become template variables."""
    text = _with_intervals(expression)
    choices = _CHOICE.findall(text)
    if not choices:
        return f"query `{text}`"
    pattern = _CHOICE.sub("%s", text.replace("%", "%%"))
    return f"query (printf `{pattern}` {' '.join(f'${name}' for name in choices)})"


def quoted_for_script(expression: str) -> str:
    """The query as an HTML attribute for the page's script."""
    text = escape(_with_intervals(expression))
    return _CHOICE.sub(_TAKEN, text)


def graph_link(expressions: Sequence[str]) -> str:
    """The path of Prometheus' graph page with these queries."""
    parts = []
    for number, expression in enumerate(expressions):
        text = quote(_with_intervals(expression), safe="$")
        parts.append(f"g{number}.expr={_CHOICE.sub(_TAKEN, text)}&amp;g{number}.tab=0&amp;g{number}.range_input=1h")
    return "/graph?" + "&amp;".join(parts)


def _with_intervals(expression: str) -> str:
    return expression.replace("$__rate_interval", _RATE_INTERVAL).replace("$__range", _RANGE)


def severity_class(thresholds: Thresholds | None, words: Sequence[Word] = ()) -> str:
    """The CSS class of a value as a template expression: of its word, else by its thresholds; plain without both."""
    text = _by_thresholds(thresholds)
    for word in words:
        text = f"{{{{ if eq .Value {word.value:.1f} }}}}{word.rating}{{{{ else }}}}{text}{{{{ end }}}}"
    return text


def _by_thresholds(thresholds: Thresholds | None) -> str:
    if thresholds is None:
        return "plain"
    compare = "lt" if thresholds.small_is_bad else "ge"
    return (
        f"{{{{ if {compare} .Value {thresholds.bad:.3f} }}}}bad"
        f"{{{{ else if {compare} .Value {thresholds.warn:.3f} }}}}warn{{{{ else }}}}calm{{{{ end }}}}"
    )


def legend(text: str) -> str:
    """The legend as a template expression."""
    return _LABEL.sub(r"{{ .Labels.\1 }}", escape(text))


def formatted(unit: str, words: Sequence[Word] = ()) -> str:
    """The value with its unit, or its word, as a template expression."""
    function, suffix = _FORMATS[unit]
    # NaN, the result of 0 / 0, is the only value that does not equal itself.
    text = f"{{{{ if eq .Value .Value }}}}{{{{ {function} .Value }}}}{suffix}{{{{ else }}}}-{{{{ end }}}}"
    for word in words:
        text = f"{{{{ if eq .Value {word.value:.1f} }}}}{escape(word.text)}{{{{ else }}}}{text}{{{{ end }}}}"
    return text
