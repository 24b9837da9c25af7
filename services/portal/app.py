"""The HTTP application of the portal: routes requests, and refuses those that no page of its own has made."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.observability.faults import load_faults
from gamelake.serving.sql.questions import Question
from services.portal.dashboard_page import DashboardPages
from services.portal.dashboards import DASHBOARDS, LAG
from services.portal.docs import DOCS, DocsSite
from services.portal.figures import FigureSource, Overview, prometheus_of
from services.portal.home import Home, by_reader, status_part
from services.portal.lineage import NAVIGATION_MARK, LineagePage, LineageUnavailableError, script_hashes
from services.portal.metrics import PortalMetrics, QuestionOutcome
from services.portal.portfolio import NoPortfolio, PortfolioReader, PortfolioSource
from services.portal.practice import (
    FAULTS,
    LOAD,
    PRACTICE,
    PRACTICE_STATUS,
    TITLE,
    Practice,
    practice_page,
    practice_status,
)
from services.portal.prometheus import FiguresUnavailableError
from services.portal.question_page import found_by, question_page
from services.portal.questions import PortalBusyError, QuestionFailedError, Questions
from services.portal.sessions import BrowserSessions, session_cookie, session_of
from services.portal.settings import PortalSettings
from services.portal.switchboard import (
    LOADS,
    Switchboard,
    SwitchboardUnavailableError,
    SwitchingFailedError,
)
from services.portal.templates import ASSETS, NavigationLink, PortalTemplates

log = event_logger("portal")

_ASSETS = {"/portal.css": "text/css; charset=utf-8", "/portal.js": "text/javascript; charset=utf-8"}
_HTML = "text/html; charset=utf-8"
_ALL_QUESTIONS, _QUESTIONS = "/questions", "/questions/"
_LINEAGE, _REPORT = "/lineage", "/report"
ENTRIES, _ENTER = "/entries", "/enter"
# An open page asks every few seconds, for more than one of its parts.
_OVERVIEW_SECONDS = 2.0
_MOST_FIELDS, _LONGEST_FIELD = 10, 200
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    ("x-content-type-options", "nosniff"),
    # With "no-referrer" browsers send no origin with a form, by which it is known to be ours.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
]


@dataclass(frozen=True, slots=True)
class PortalResponse:
    """A response; `policy` is its Content-Security-Policy, and `file` its body if that is not a page of the portal."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = _HTML
    policy: str = _POLICY
    more: tuple[tuple[str, str], ...] = field(default=())
    file: bytes | None = None

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        return self.body.encode() if self.file is None else self.file

    def headers(self) -> list[tuple[str, str]]:
        """Return all headers except those of the connection."""
        return [
            ("content-type", self.content_type),
            ("content-security-policy", self.policy),
            *_HEADERS,
            *self.more,
        ]


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """A request; `headers` are by names in lower case, and `query` is the part of the address after `?`."""

    method: str
    path: str
    headers: Mapping[str, str]
    query: str = ""


class RecentOverview:
    """The overview of a source, at most two seconds old: many readers ask the source once."""

    def __init__(self, source: FigureSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._lock = Lock()
        self._read_at = float("-inf")
        self._newest = Overview((), ())

    def overview(self) -> Overview:
        """Return the state of the platform."""
        with self._lock:
            if self._clock() - self._read_at > _OVERVIEW_SECONDS:
                self._newest = self._source.overview()
                self._read_at = self._clock()
            return self._newest


class PortalApp:
    """One process of the service.

    Args:
        settings: the settings.
        figures: the source of health and figures.
        questions: the questions that can be run.
        metrics: the portal's own metrics.
        portfolio: the source of the games' figures; None: the tables that questions read, if there are any.
    """

    def __init__(
        self,
        settings: PortalSettings,
        figures: FigureSource,
        questions: Questions,
        metrics: PortalMetrics,
        portfolio: PortfolioSource | None = None,
    ) -> None:
        self._settings = settings
        self._figures = RecentOverview(figures)
        self._questions = questions
        self._metrics = metrics
        has_tables = settings.has_lakehouse or settings.trino is not None
        self._portfolio = portfolio or (PortfolioReader(questions.run_with) if has_tables else NoPortfolio())
        self._faults = tuple(load_faults(settings.faults).values()) if settings.faults else ()
        self._docs = DocsSite(settings.docs, settings.runbooks)
        self._sessions = BrowserSessions()
        self._switchboard = Switchboard(settings.switchboard) if settings.switchboard else None
        self._lineage = LineagePage(settings.lineage)
        self._pages: dict[str, Callable[[str], PortalResponse]] = {
            "/": lambda query: PortalResponse(self._home(query).page(self._templates)),
            "/tiles": lambda query: PortalResponse(self._home(query).tiles_part()),
            "/portfolio": lambda query: PortalResponse(self._home(query).portfolio_part()),
            "/status": lambda _: PortalResponse(status_part(self._figures.overview())),
            _ALL_QUESTIONS: self._list,
            **{path: partial(_asset, path) for path in _ASSETS},
        }
        self._templates = PortalTemplates(tuple(self._navigation()))
        self._changes: dict[str, Callable[[], None]] = {}
        if self._switchboard is not None:
            self._changes = dict(_changes(self._switchboard, [each.name for each in self._faults]))

    def _navigation(self) -> Iterator[NavigationLink]:
        """Add the pages that this portal has; yield the link to each."""
        yield NavigationLink(_ALL_QUESTIONS, "Questions")
        yield from self._dashboards()
        if self._faults or self._switchboard is not None:
            self._pages[PRACTICE] = lambda _: PortalResponse(practice_page(self._practice(), self._templates))
            self._pages[PRACTICE_STATUS] = lambda _: PortalResponse(practice_status(self._practice()))
            yield NavigationLink(PRACTICE, TITLE)
        if self._settings.has_lakehouse or self._settings.lineage is not None:
            self._pages[_LINEAGE] = self._drawn_lineage
            yield NavigationLink(_LINEAGE, "Lineage")
        if self._settings.docs is not None:
            yield NavigationLink(DOCS, "Documents")
        if self._settings.report is not None:
            self._pages[_REPORT] = partial(self._written_report, self._settings.report)
            yield NavigationLink(_REPORT, "Report of make demo")

    def respond(
        self, method: str, path: str, headers: Mapping[str, str], client: str | None = "", query: str = ""
    ) -> PortalResponse:
        """Respond to a request; any exception becomes a response too.

        Args:
            method: the method, in upper case.
            path: without a query.
            headers: by names in lower case.
            client: the name in the client's certificate, empty without TLS; None at the port for browsers, which have
                sessions instead of certificates.
            query: the part of the address after `?`.
        """
        try:
            return self._respond(PortalRequest(method, path, headers, query), client)
        except Exception as error:
            log.warning("portal_page_failed", path=path, error=repr(error))
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The page can't be made; the portal's log says why.")

    def _respond(self, request: PortalRequest, client: str | None) -> PortalResponse:
        if request.path == "/healthz":
            return PortalResponse("ok\n", content_type="text/plain; charset=utf-8")
        if client is None:
            return self._respond_to_browser(request)
        if request.path == "/metrics" and self._is_addressed_by_its_name(request):
            return PortalResponse("", content_type=CONTENT_TYPE_PLAIN_0_0_4, file=self._metrics.exposition())
        # All services have a certificate of the authority; the pages are for people.
        if self._settings.tls is not None and client not in self._settings.operators:
            return _problem(HTTPStatus.FORBIDDEN, "This certificate does not open the portal: use the operator's.")
        if request.path == ENTRIES and self._settings.browser_port is not None:
            return self._new_entry(request)
        return self._counted(request)

    def _respond_to_browser(self, request: PortalRequest) -> PortalResponse:
        """Respond to a browser without a certificate: only a session opens the pages."""
        if self._is_addressed_by_its_name(request):
            if request.path == _ENTER:
                return self._entered(request)
            if not self._sessions.is_open(session_of(request.headers)):
                return _no_session(self._settings)
        return self._counted(request)

    def _counted(self, request: PortalRequest) -> PortalResponse:
        response = self._response(request)
        self._metrics.responded(response.status)
        return response

    def _new_entry(self, request: PortalRequest) -> PortalResponse:
        """Return the path and query of an address that opens one session."""
        if request.method != "POST":
            return _not_allowed("POST")
        if not (self._is_addressed_by_its_name(request) and _is_from_own_page(request.headers)):
            return _problem(HTTPStatus.FORBIDDEN, "Only gamelake portal can make an address.")
        entry = f"{_ENTER}?token={self._sessions.make_token()}"
        return PortalResponse(entry, content_type="text/plain; charset=utf-8")

    def _entered(self, request: PortalRequest) -> PortalResponse:
        session = self._sessions.open(_field(request.query, "token"))
        if session is None:
            return _no_session(self._settings)
        headers = (("location", "/"), ("set-cookie", session_cookie(request.headers, session)))
        return PortalResponse("", HTTPStatus.SEE_OTHER, more=headers)

    def _response(self, request: PortalRequest) -> PortalResponse:
        if not self._is_addressed_by_its_name(request):
            return _problem(HTTPStatus.MISDIRECTED_REQUEST, "This address is not the portal's.")
        try:
            return self._page(request)
        except FiguresUnavailableError as error:
            return self._refused(
                HTTPStatus.SERVICE_UNAVAILABLE, str(error), self._settings.restarts.of_job("prometheus")
            )
        except LineageUnavailableError as error:
            return self._refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error), error.remedy)
        except GamelakeError as error:
            log.warning("portal_page_failed", path=request.path, error=error)
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The page can't be made; the portal's log says why.")

    def _page(self, request: PortalRequest) -> PortalResponse:
        path, method = request.path, request.method
        if path.startswith(DOCS):
            return self._document(path.removeprefix(DOCS)) if method == "GET" else _not_allowed("GET")
        if path.startswith(_QUESTIONS):
            return self._question(request, path.removeprefix(_QUESTIONS))
        if path in self._changes:
            return self._change(request, self._changes[path])
        page = self._pages.get(path)
        if page is None:
            return self._refused(HTTPStatus.NOT_FOUND, "There is no such page.")
        return page(request.query) if method == "GET" else _not_allowed("GET")

    def _dashboards(self) -> Iterator[NavigationLink]:
        """Add the page of each dashboard; yield the link to the one to open first."""
        prometheus = prometheus_of(self._settings)
        if prometheus is None or self._settings.dashboards is None:
            return
        dashboards = DashboardPages(self._settings.dashboards, prometheus)
        for uid in dashboards.all:
            self._pages[f"{DASHBOARDS}{uid}"] = partial(self._dashboard, dashboards, uid)
        yield NavigationLink(f"{DASHBOARDS}{LAG}", "Dashboards")

    def _dashboard(self, dashboards: DashboardPages, uid: str, _: str) -> PortalResponse:
        return PortalResponse(dashboards.page(uid, self._templates))

    def _home(self, query: str) -> Home:
        return Home(
            overview=self._figures.overview(),
            portfolio=self._portfolio.newest(),
            game=_field(query, "game"),
            questions=self._questions.all(),
            links=self._settings.links,
        )

    def _list(self, query: str) -> PortalResponse:
        search, every = _field(query, "q"), self._questions.all()
        found = found_by(search, every.values())
        counts = {"found": len(found), "total": len(every)}
        return PortalResponse(
            self._templates.page("questions.html", _ALL_QUESTIONS, search=search, groups=by_reader(found), **counts)
        )

    def _drawn_lineage(self, _: str) -> PortalResponse:
        navigation = self._templates.page("lineage_bar.html", _LINEAGE)
        return _whole_file(self._lineage.get().replace(NAVIGATION_MARK, navigation, 1))

    def _written_report(self, file: Path, _: str) -> PortalResponse:
        try:
            page = file.read_text(encoding="utf-8")
        except OSError:
            return self._refused(HTTPStatus.NOT_FOUND, "There is no report yet: make demo writes it.", "make demo")
        return _whole_file(page.replace(NAVIGATION_MARK, self._templates.page("lineage_bar.html", _REPORT), 1))

    def _refused(self, status: HTTPStatus, text: str, remedy: str = "") -> PortalResponse:
        page = self._templates.page("problem.html", heading=status.phrase, text=text, remedy=remedy)
        return PortalResponse(page, status)

    def _practice(self) -> Practice:
        states = None
        if self._switchboard is not None:
            with suppress(SwitchboardUnavailableError):
                states = self._switchboard.states()
        return Practice(self._figures.overview(), states, self._faults)

    def _change(self, request: PortalRequest, change: Callable[[], None]) -> PortalResponse:
        if request.method != "POST":
            return _not_allowed("POST")
        if not _is_from_own_page(request.headers):
            return _problem(HTTPStatus.FORBIDDEN, "Only a page of the portal can switch this.")
        try:
            change()
        except SwitchboardUnavailableError:
            return self._refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Nothing can be switched: the program gamelake switchboard does not run.",
                "gamelake switchboard",
            )
        except SwitchingFailedError as error:
            return self._refused(HTTPStatus.BAD_GATEWAY, str(error))
        return PortalResponse("", HTTPStatus.SEE_OTHER, more=(("location", PRACTICE),))

    def _document(self, path: str) -> PortalResponse:
        found = self._docs.get(path)
        if found is None:
            return self._refused(
                HTTPStatus.NOT_FOUND, "There is no such document; make docs builds the site.", "make docs"
            )
        return PortalResponse("", content_type=found.content_type, policy=found.policy, file=found.content)

    def _question(self, request: PortalRequest, name: str) -> PortalResponse:
        question = self._questions.all().get(name)
        if question is None:
            return self._refused(HTTPStatus.NOT_FOUND, "There is no such question.")
        if request.method not in {"GET", "POST"}:
            return _not_allowed("GET, POST")
        if request.method == "GET":
            return PortalResponse(question_page(question, self._templates))
        if not _is_from_own_page(request.headers):
            return _problem(HTTPStatus.FORBIDDEN, "Only a page of the portal can run a question.")
        return self._run(question)

    def _run(self, question: Question) -> PortalResponse:
        started, outcome = time.monotonic(), QuestionOutcome.FAILED
        try:
            result = self._questions.run(question)
            outcome = QuestionOutcome.OK
            return PortalResponse(question_page(question, self._templates, result))
        except PortalBusyError as error:
            outcome = QuestionOutcome.BUSY
            page = question_page(question, self._templates, problem=str(error))
            return PortalResponse(page, HTTPStatus.TOO_MANY_REQUESTS)
        except QuestionFailedError as error:
            page = question_page(question, self._templates, problem=str(error), remedy=error.remedy)
            return PortalResponse(page, HTTPStatus.BAD_GATEWAY)
        finally:
            self._metrics.question_ended(outcome, time.monotonic() - started)

    def _is_addressed_by_its_name(self, request: PortalRequest) -> bool:
        """Return True if the name is the portal's.

        A page of another site may have had its name resolve to this machine.
        """
        try:
            address = urlsplit(f"//{request.headers.get('host', '')}")
            _ = address.port  # raises if it is not a number
        except ValueError:
            return False
        return address.hostname in self._settings.names


def _changes(switchboard: Switchboard, faults: Sequence[str]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each path that changes something, with the change: no other ones can be asked for."""
    for rate in LOADS:
        yield f"{LOAD}{rate}", partial(switchboard.set_load, rate)
    for name in faults:
        yield f"{FAULTS}{name}/on", partial(switchboard.switch, name, on=True)
        yield f"{FAULTS}{name}/off", partial(switchboard.switch, name, on=False)


def _is_from_own_page(headers: Mapping[str, str]) -> bool:
    """Return True if no other site's page has made the request; programs send neither header.

    Source: Fetch Metadata, https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False


def _field(query: str, name: str) -> str:
    """Return the value of a form's field in a query; empty if it is missing."""
    return parse_qs(query, max_num_fields=_MOST_FIELDS).get(name, [""])[0][:_LONGEST_FIELD]


def _whole_file(page: str) -> PortalResponse:
    # It is one file, with its style and scripts in it: these scripts run, and no other ones.
    policy = (
        f"default-src 'none'; script-src {' '.join(script_hashes(page))}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return PortalResponse(page, policy=policy)


def _asset(path: str, _: str) -> PortalResponse:
    return PortalResponse((ASSETS / path[1:]).read_text(encoding="utf-8"), content_type=_ASSETS[path])


def _problem(status: HTTPStatus, text: str, remedy: str = "") -> PortalResponse:
    """Return a page without navigation, for a client that may not see which pages there are."""
    page = PortalTemplates().page("problem.html", heading=status.phrase, text=text, remedy=remedy)
    return PortalResponse(page, status)


def _no_session(settings: PortalSettings) -> PortalResponse:
    text = "Each address opens the portal once, within ten minutes."
    if settings.namespace:
        return _problem(HTTPStatus.FORBIDDEN, f"{text} docs/cluster.md says how to get a new one.")
    return _problem(HTTPStatus.FORBIDDEN, f"{text} Get a new address:", "gamelake portal")


def _not_allowed(allowed: str) -> PortalResponse:
    response = _problem(HTTPStatus.METHOD_NOT_ALLOWED, "Use a page of the portal.")
    return replace(response, more=(("allow", allowed),))
