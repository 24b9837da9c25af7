"""The portal's pages as HTML: complete without a script, for the keyboard and for screen readers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from string import Template

from gamelake.observability.faults import Fault
from gamelake.serving.sql.questions import Question
from services.portal.figures import Overview, ServiceHealth, StreamFigures
from services.portal.questions import QuestionResult

_FRAME = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/portal.css">
<script src="/portal.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><a href="/">Gamelake</a></header>
<main id="content" tabindex="-1">
$body
</main>
</body>
</html>
""")
_WHAT = (
    "Games send events over HTTP to a gateway, which writes them to Kafka. One Spark query writes each event exactly "
    "once to Delta tables: bronze has every record, silver one table per game, gold the aggregates and key figures."
)
_UNKNOWN = "unknown"


def home_page(
    overview: Overview,
    questions: Mapping[str, Question],
    links: Mapping[str, str],
    faults: Iterable[Fault] = (),
    consoles: str = "",
    *,
    has_lineage: bool,
) -> str:
    """The first page.

    Args:
        overview: health and figures.
        questions: those that can be run, by name.
        links: addresses of other pages, by what they are.
        faults: those that can be switched on for practice.
        consoles: the address of the dashboards and runbooks that Prometheus serves.
        has_lineage: whether the portal has a page of the tables' lineage.
    """
    body = "\n".join(
        [
            "<h1>Gamelake</h1>",
            f"<p>{escape(_WHAT)}</p>",
            f'<div id="status">{status_part(overview, consoles)}</div>',
            _questions_part(questions.values()),
            _faults_part(tuple(faults), consoles),
            _links_part(links, has_lineage=has_lineage),
        ]
    )
    return _page("Gamelake", body)


def status_part(overview: Overview, consoles: str = "", now: datetime | None = None) -> str:
    """The part of the first page that is refreshed: health, figures, and firing alerts."""
    moment = (now or datetime.now(UTC)).strftime("%H:%M:%S")
    problem = f'<p class="bad">{escape(overview.problem)}</p>' if overview.problem else ""
    services = _section("services", "Services", problem + _health(overview.services))
    streams = _section("streams", "Streams", _streams(overview.streams))
    return services + streams + _alerts_part(overview.alerts, consoles) + f"<p>As of {moment} UTC.</p>"


def question_page(question: Question, result: QuestionResult | None = None, problem: str = "") -> str:
    """A question with its statement, and its result or why there is none, once it was run."""
    title = escape(question.title)
    parts = [f"<h1>{title}</h1>", f"<p>A row is: {escape(question.grain)}</p>"]
    if problem:
        parts.append(f'<p class="bad" role="alert">{escape(problem)}</p>')
    if result is not None:
        parts.append(_result(question.title, result))
    parts += [
        _run_button(question, "Run" if result is None else "Run again"),
        f'<h2 id="statement">Statement</h2><pre tabindex="0" aria-labelledby="statement">{escape(question.sql)}</pre>',
        '<p><a href="/#questions">All questions</a></p>',
    ]
    return _page(f"{title} - Gamelake", "\n".join(parts))


def problem_page(title: str, text: str) -> str:
    """A page with a sentence."""
    return _page(
        f"{escape(title)} - Gamelake", f'<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n<p><a href="/">Home</a></p>'
    )


def _page(title: str, body: str) -> str:
    return _FRAME.substitute(title=title, body=body)


def _health(services: Sequence[ServiceHealth]) -> str:
    if not services:
        return "<p>No service is known.</p>"
    rows = ((escape(each.name), _state(each.is_healthy, "responds", "does not respond")) for each in services)
    return _table("Services and whether they respond", ("service", "state"), rows)


def _streams(streams: Sequence[StreamFigures]) -> str:
    if not streams:
        return "<p>No stream reports figures yet.</p>"
    columns = ("stream", "state", "records/s", "lag, records", "behind, s")
    rows = (
        (
            escape(each.stream),
            _state(each.is_up, "runs", "is down"),
            _number(each.records_per_second),
            _number(each.lag),
            _number(each.seconds_behind, 1),
        )
        for each in streams
    )
    return _table("Streams with rate, lag and freshness", columns, rows, numbers_from=2)


def _state(is_good: bool, good: str, bad: str) -> str:
    return f'<span class="good">{good}</span>' if is_good else f'<span class="bad">{bad}</span>'


def _section(name: str, title: str, content: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{content}</section>'


def _number(value: float | None, digits: int = 0) -> str:
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"


def _questions_part(questions: Iterable[Question]) -> str:
    rows = (
        (
            f'<a href="/questions/{escape(each.name)}">{escape(each.title)}</a>',
            escape(each.grain),
            _run_button(each, "Run"),
        )
        for each in questions
    )
    table = _table("Questions about the tables", ("question", "a row is", "action"), rows)
    return _section("questions", "Questions", table)


def _alerts_part(alerts: Sequence[str] | None, consoles: str) -> str:
    if alerts is None:
        return ""
    items = "".join(f'<li class="bad">{_runbook(name, consoles)}</li>' for name in alerts)
    return _section("alerts", "Alerts", f"<ul>{items}</ul>" if items else "<p>No alert fires.</p>")


def _runbook(alert: str, consoles: str) -> str:
    return f'<a href="{escape(consoles)}/runbooks/{escape(alert)}.html">{escape(alert)}</a>'


def _faults_part(faults: Sequence[Fault], consoles: str) -> str:
    if not faults:
        return ""
    rows = (
        (
            f"{escape(each.title)}. {escape(each.effect)}",
            f"<code>gamelake fault on {escape(each.name)}</code>",
            ", ".join(_runbook(name, consoles) for name in each.alerts) or "none",
            f'<a href="{escape(consoles)}/{escape(each.panel.dashboard)}.html">{escape(each.panel.title)}</a>',
            f"<code>{escape(each.ended_by)}</code>",
        )
        for each in faults
    )
    columns = ("fault", "switch it on", "alerts and their runbooks", "panel", "remedy")
    explained = "<p>The portal can change nothing in the stack: run the commands in a terminal on its machine.</p>"
    table = _table("Faults and what shows them", columns, rows)
    return _section("faults", "Faults to practise with", explained + table)


def _run_button(question: Question, text: str) -> str:
    # Its name for a screen reader says which of the buttons it is.
    return (
        f'<form method="post" action="/questions/{escape(question.name)}">'
        f'<button aria-label="{text}: {escape(question.title)}">{text}</button></form>'
    )


def _links_part(links: Mapping[str, str], *, has_lineage: bool) -> str:
    entries = {**({"Lineage of the tables": "/lineage"} if has_lineage else {}), **links}
    items = "".join(f'<li><a href="{escape(address)}">{escape(name)}</a></li>' for name, address in entries.items())
    content = (
        f"<ul>{items}</ul>"
        "<p>Users and passwords: <code>gamelake credentials</code> lists addresses and users, "
        "<code>gamelake credentials NAME</code> shows one secret. No password is on this page.</p>"
    )
    return _section("links", "Pages", content)


def _result(title: str, result: QuestionResult) -> str:
    if not result.rows:
        return '<p role="status">There are no rows.</p>'
    count = f"{len(result.rows):,} {'row' if len(result.rows) == 1 else 'rows'}"
    cut = "the first " if result.is_cut else ""
    rows = ([escape(cell) for cell in row] for row in result.rows)
    columns = [escape(name) for name in result.columns]
    return f'<p role="status">{cut}{count}</p>' + _table(f"Result: {title}", columns, rows)


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int | None = None) -> str:
    """A table of cells that are HTML; it scrolls by the keyboard where it is wider than the window."""
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "".join(
        f"<tr>{''.join(_cell(number, cell, numbers_from) for number, cell in enumerate(row))}</tr>" for row in rows
    )
    label = escape(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table><caption>{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(number: int, cell: str, numbers_from: int | None) -> str:
    if number == 0:
        return f'<th scope="row">{cell}</th>'
    return (
        f'<td class="number">{cell}</td>' if numbers_from is not None and number >= numbers_from else f"<td>{cell}</td>"
    )
