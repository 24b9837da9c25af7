"""How a panel's query, legend and unit are written in a console template."""

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from grafana_foundation_sdk.models import units

from monitoring.grafana.panels import Limits

# Four times the longest scrape interval, which is what Grafana makes of it.
_RATE_INTERVAL = "1m"
_CHOICE = re.compile(r"\$(query|game|table|title)")
_TAKEN = r"{{ $\1 }}"
_LABEL = re.compile(r"{{(\w+)}}")

_PLAIN = "humanize"
_FORMATS = {
    units.NoUnit: (_PLAIN, ""),
    units.Short: (_PLAIN, ""),
    units.Seconds: ("humanizeDuration", ""),
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
    """The template's call that asks for it; a reader's choices are the template's variables."""
    text = expression.replace("$__rate_interval", _RATE_INTERVAL)
    choices = _CHOICE.findall(text)
    if not choices:
        return f"query `{text}`"
    pattern = _CHOICE.sub("%s", text.replace("%", "%%"))
    return f"query (printf `{pattern}` {' '.join(f'${name}' for name in choices)})"


def quoted_for_script(expression: str) -> str:
    """The query as an attribute that the page's script reads."""
    text = escape(expression.replace("$__rate_interval", _RATE_INTERVAL))
    return _CHOICE.sub(_TAKEN, text)


def graph_link(expressions: Sequence[str]) -> str:
    """The address of Prometheus' own page of these queries, where a reader can zoom and change them."""
    parts = []
    for number, expression in enumerate(expressions):
        text = quote(expression.replace("$__rate_interval", _RATE_INTERVAL), safe="$")
        parts.append(f"g{number}.expr={_CHOICE.sub(_TAKEN, text)}&amp;g{number}.tab=0&amp;g{number}.range_input=1h")
    return "/graph?" + "&amp;".join(parts)


def mood_of(limits: Limits | None) -> str:
    """What a value is to a reader: the name of a style, by the limits that alerts have too."""
    if limits is None:
        return "plain"
    compare = "lt" if limits.small_is_bad else "ge"
    return (
        f"{{{{ if {compare} .Value {limits.bad:.3f} }}}}bad"
        f"{{{{ else if {compare} .Value {limits.warn:.3f} }}}}warn{{{{ else }}}}calm{{{{ end }}}}"
    )


def legend(text: str) -> str:
    """A series' name."""
    return _LABEL.sub(r"{{ .Labels.\1 }}", escape(text))


def figure_of(unit: str, words: Sequence[tuple[float, str]] = ()) -> str:
    """A series' value for people."""
    function, suffix = _FORMATS[unit]
    # What is divided by nothing is not a number, and the only value that does not equal itself.
    text = f"{{{{ if eq .Value .Value }}}}{{{{ {function} .Value }}}}{suffix}{{{{ else }}}}-{{{{ end }}}}"
    for number, word in words:
        text = f"{{{{ if eq .Value {number:.1f} }}}}{escape(word)}{{{{ else }}}}{text}{{{{ end }}}}"
    return text
