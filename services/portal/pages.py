"""The portal's first page, and the page of a question."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from gamelake.serving.sql.questions import Question
from services.portal.docs import DOCS, RUNBOOKS
from services.portal.figures import Overview, ServiceHealth, StreamFigures
from services.portal.html import button, copied, link, number, page, refreshed, section, state, table
from services.portal.questions import QuestionResult
from services.portal.settings import PageLink

_WHAT = (
    "Games send events over HTTP to a gateway, which writes them to Kafka. One Spark query writes each event exactly "
    "once to Delta tables: bronze has every record, silver one table per game, gold the aggregates and KPIs."
)

# From here on the alert StreamTooFarBehind fires: half of the time within which events must be in the tables.
_SECONDS_BEHIND = 300


def home_page(overview: Overview, questions: Mapping[str, Question], links: Mapping[str, PageLink]) -> str:
    """Render the first page.

    Args:
        overview: health and figures.
        questions: those that can be run, by name.
        links: other pages, by their titles.
    """
    body = "\n".join(
        [
            "<h1>Gamelake</h1>",
            f"<p>{escape(_WHAT)}</p>",
            refreshed(status_part(overview), "/status"),
            _questions_part(questions.values()),
            _links_part(links),
        ]
    )
    return page("Gamelake", body)


def status_part(overview: Overview, now: datetime | None = None) -> str:
    """Render the part of the first page that is refreshed: health, figures, and firing alerts."""
    moment = (now or datetime.now(UTC)).strftime("%H:%M:%S")
    problem = f'<p class="bad">{escape(overview.problem)}</p>' if overview.problem else ""
    services = section("services", "Services", problem + _health(overview.services))
    alerts = alerts_part(overview.alerts)
    return services + streams_part(overview.streams) + alerts + f"<p>As of {moment} UTC.</p>"


def streams_part(streams: Sequence[StreamFigures]) -> str:
    """Render the section of the streams' figures."""
    return section("streams", "Streams", _streams(streams))


def alerts_part(alerts: Sequence[str] | None) -> str:
    """Render the section of firing alerts; empty without Prometheus, where they are None."""
    if alerts is None:
        return ""
    items = "".join(f'<li class="bad">{runbook_link(name)}</li>' for name in alerts)
    return section("alerts", "Alerts", f"<ul>{items}</ul>" if items else "<p>No alert fires.</p>")


def runbook_link(alert: str) -> str:
    """Return a link from an alert to its runbook."""
    return link(f"{DOCS}{RUNBOOKS}{alert}/", alert)


def question_page(question: Question, result: QuestionResult | None = None, problem: str = "") -> str:
    """Render a question with its statement, and its result or why there is none, once it was run."""
    parts = [f"<h1>{escape(question.title)}</h1>", f"<p>Grain: {escape(question.grain)}</p>"]
    if problem:
        parts.append(f'<p class="bad" role="alert">{escape(problem)}</p>')
    if result is not None:
        parts.append(_result(question.title, result))
    parts += [
        _run_button(question, "Run" if result is None else "Run again"),
        f'<h2 id="statement">Statement</h2><pre tabindex="0" aria-labelledby="statement">{escape(question.sql)}</pre>',
        '<p><a href="/#questions">All questions</a></p>',
    ]
    return page(f"{question.title} - Gamelake", "\n".join(parts))


def _health(services: Sequence[ServiceHealth]) -> str:
    if not services:
        return "<p>No service is known.</p>"
    rows = ((escape(each.name), state(each.is_healthy, "responds", "does not respond")) for each in services)
    return table("Services and whether they respond", ("service", "state"), rows)


def _streams(streams: Sequence[StreamFigures]) -> str:
    if not streams:
        return "<p>No stream reports figures yet.</p>"
    columns = ("stream", "state", "records/s", "lag, records", "behind, s")
    rows = (
        (
            escape(each.stream),
            _stream_state(each),
            number(each.records_per_second),
            number(each.lag),
            number(each.seconds_behind, 1),
        )
        for each in streams
    )
    return table("Streams with rate, lag and freshness", columns, rows, numbers_from=2)


def _stream_state(stream: StreamFigures) -> str:
    is_late = (stream.seconds_behind or 0) > _SECONDS_BEHIND
    return state(stream.is_up and not is_late, "runs", "is behind" if stream.is_up else "is down")


def _questions_part(questions: Iterable[Question]) -> str:
    rows = (
        (link(f"/questions/{each.name}", each.title), escape(each.grain), _run_button(each, "Run"))
        for each in questions
    )
    columns = ("question", "grain", "action")
    return section("questions", "Questions", table("Questions about the tables", columns, rows))


def _run_button(question: Question, text: str) -> str:
    return button(f"/questions/{question.name}", text, f"{text}: {question.title}", "Running")


def _links_part(links: Mapping[str, PageLink]) -> str:
    rows = ((link(each.address, name), escape(each.user), _password(each)) for name, each in links.items())
    content = (
        table("Pages of the platform", ("page", "user", "password"), rows)
        + "<p>No password is on this page: the commands print them, and <code>gamelake credentials</code> lists all "
        "addresses and users.</p>"
    )
    return section("links", "Pages", content)


def _password(each: PageLink) -> str:
    return copied(f"gamelake credentials {each.secret}") if each.secret else ""


def _result(title: str, result: QuestionResult) -> str:
    if not result.rows:
        return '<p role="status">There are no rows.</p>'
    count = f"{len(result.rows):,} {'row' if len(result.rows) == 1 else 'rows'}"
    cut, more = ("The first ", "; there are more") if result.is_cut else ("", "")
    rows = ([escape(cell) for cell in row] for row in result.rows)
    columns = [escape(name) for name in result.columns]
    return f'<p role="status">{cut}{count}{more}</p>' + table(f"Result: {title}", columns, rows)
