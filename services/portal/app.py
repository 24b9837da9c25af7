"""The HTTP application of the portal: routes requests, and refuses those that no page of its own has made."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.observability.faults import load_faults
from gamelake.serving.sql.questions import Question
from services.portal.dashboard_page import DashboardPages
from services.portal.dashboards import DASHBOARDS, LAG
from services.portal.docs import DOCS, DocsSite
from services.portal.figures import FigureSource, prometheus_of
from services.portal.html import problem_page
from services.portal.lineage import LineagePage, LineageUnavailableError, script_hashes
from services.portal.metrics import PortalMetrics, QuestionOutcome
from services.portal.pages import home_page, question_page, status_part
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
from services.portal.questions import PortalBusyError, QuestionFailedError, Questions
from services.portal.settings import PageLink, PortalSettings
from services.portal.switchboard import (
    LOADS,
    Switchboard,
    SwitchboardUnavailableError,
    SwitchingFailedError,
)

log = event_logger("portal")

_FILES = Path(__file__).parent / "assets"
_ASSETS = {"/portal.css": "text/css; charset=utf-8", "/portal.js": "text/javascript; charset=utf-8"}
_HTML = "text/html; charset=utf-8"
_QUESTIONS = "/questions/"
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


class PortalApp:
    """One process of the service."""

    def __init__(
        self, settings: PortalSettings, figures: FigureSource, questions: Questions, metrics: PortalMetrics
    ) -> None:
        self._settings = settings
        self._figures = figures
        self._questions = questions
        self._metrics = metrics
        self._faults = tuple(load_faults(settings.faults).values()) if settings.faults else ()
        self._docs = DocsSite(settings.docs, settings.runbooks)
        self._switchboard = Switchboard(settings.switchboard) if settings.switchboard else None
        lineage = LineagePage(settings.lineage)
        self._pages: dict[str, Callable[[], PortalResponse]] = {
            "/": self._home,
            "/status": self._status,
            **{path: partial(_asset, path) for path in _ASSETS},
        }
        links: dict[str, PageLink] = {}
        if self._faults or self._switchboard is not None:
            self._pages[PRACTICE] = lambda: PortalResponse(practice_page(self._practice()))
            self._pages[PRACTICE_STATUS] = lambda: PortalResponse(practice_status(self._practice()))
            links[TITLE] = PageLink(PRACTICE)
        links |= self._dashboards()
        if settings.docs is not None:
            links["Documents"] = PageLink(DOCS)
        if settings.has_lakehouse or settings.lineage is not None:
            self._pages["/lineage"] = lambda: _whole_file(lineage.get())
            links["Lineage of the tables"] = PageLink("/lineage")
        if settings.report is not None:
            self._pages["/report"] = partial(_report, settings.report)
            links["Report of the last make demo"] = PageLink("/report")
        self._links = {**links, **settings.links}
        self._changes: dict[str, Callable[[], None]] = {}
        if self._switchboard is not None:
            self._changes = dict(_changes(self._switchboard, [each.name for each in self._faults]))

    def respond(self, method: str, path: str, headers: Mapping[str, str], client: str = "") -> PortalResponse:
        """Respond to a request; any exception becomes a response too.

        Args:
            method: the method, in upper case.
            path: without a query.
            headers: by names in lower case.
            client: the name in the client's certificate, where there is TLS.
        """
        try:
            return self._respond(method, path, headers, client)
        except Exception as error:
            log.warning("portal_page_failed", path=path, error=repr(error))
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The page can't be made; the portal's log says why.")

    def _respond(self, method: str, path: str, headers: Mapping[str, str], client: str) -> PortalResponse:
        if path == "/healthz":
            return PortalResponse("ok\n", content_type="text/plain; charset=utf-8")
        if path == "/metrics" and self._is_addressed_by_its_name(headers):
            return PortalResponse("", content_type=CONTENT_TYPE_PLAIN_0_0_4, file=self._metrics.exposition())
        # All services have a certificate of the authority; the pages are for people.
        if self._settings.tls is not None and client not in self._settings.operators:
            return _problem(HTTPStatus.FORBIDDEN, "This certificate does not open the portal: use the operator's.")
        response = self._response(method, path, headers)
        self._metrics.responded(response.status)
        return response

    def _response(self, method: str, path: str, headers: Mapping[str, str]) -> PortalResponse:
        if not self._is_addressed_by_its_name(headers):
            return _problem(HTTPStatus.MISDIRECTED_REQUEST, "This address is not the portal's.")
        try:
            return self._page(method, path, headers)
        except (FiguresUnavailableError, LineageUnavailableError) as error:
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except GamelakeError as error:
            log.warning("portal_page_failed", path=path, error=error)
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The page can't be made; the portal's log says why.")

    def _page(self, method: str, path: str, headers: Mapping[str, str]) -> PortalResponse:
        if path.startswith(DOCS):
            return self._document(path.removeprefix(DOCS)) if method == "GET" else _not_allowed("GET")
        if path.startswith(_QUESTIONS):
            return self._question(method, path.removeprefix(_QUESTIONS), headers)
        if path in self._changes:
            return self._change(method, self._changes[path], headers)
        page = self._pages.get(path)
        if page is None:
            return _problem(HTTPStatus.NOT_FOUND, "There is no such page.")
        return page() if method == "GET" else _not_allowed("GET")

    def _dashboards(self) -> dict[str, PageLink]:
        """Adds the page of each dashboard; returns the link to the one to open first."""
        prometheus = prometheus_of(self._settings)
        if prometheus is None or self._settings.dashboards is None:
            return {}
        dashboards = DashboardPages(self._settings.dashboards, prometheus)
        for uid in dashboards.all:
            self._pages[f"{DASHBOARDS}{uid}"] = partial(_dashboard, dashboards, uid)
        return {dashboards.all[LAG].title: PageLink(f"{DASHBOARDS}{LAG}")}

    def _home(self) -> PortalResponse:
        return PortalResponse(home_page(self._figures.overview(), self._questions.all(), self._links))

    def _status(self) -> PortalResponse:
        return PortalResponse(status_part(self._figures.overview()))

    def _practice(self) -> Practice:
        states = None
        if self._switchboard is not None:
            with suppress(SwitchboardUnavailableError):
                states = self._switchboard.states()
        return Practice(self._figures.overview(), states, self._faults)

    def _change(self, method: str, change: Callable[[], None], headers: Mapping[str, str]) -> PortalResponse:
        if method != "POST":
            return _not_allowed("POST")
        if not _is_from_own_page(headers):
            return _problem(HTTPStatus.FORBIDDEN, "Only a page of the portal can switch this.")
        try:
            change()
        except SwitchboardUnavailableError:
            return _problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Nothing can be switched: the program gamelake switchboard does not run.",
            )
        except SwitchingFailedError as error:
            return _problem(HTTPStatus.BAD_GATEWAY, str(error))
        return PortalResponse("", HTTPStatus.SEE_OTHER, more=(("location", PRACTICE),))

    def _document(self, path: str) -> PortalResponse:
        found = self._docs.get(path)
        if found is None:
            return _problem(HTTPStatus.NOT_FOUND, "There is no such document; make docs builds the site.")
        return PortalResponse("", content_type=found.content_type, policy=found.policy, file=found.content)

    def _question(self, method: str, name: str, headers: Mapping[str, str]) -> PortalResponse:
        question = self._questions.all().get(name)
        if question is None:
            return _problem(HTTPStatus.NOT_FOUND, "There is no such question.")
        if method not in {"GET", "POST"}:
            return _not_allowed("GET, POST")
        if method == "GET":
            return PortalResponse(question_page(question))
        if not _is_from_own_page(headers):
            return _problem(HTTPStatus.FORBIDDEN, "Only a page of the portal can run a question.")
        return self._run(question)

    def _run(self, question: Question) -> PortalResponse:
        started, outcome = time.monotonic(), QuestionOutcome.FAILED
        try:
            result = self._questions.run(question)
            outcome = QuestionOutcome.OK
            return PortalResponse(question_page(question, result))
        except PortalBusyError as error:
            outcome = QuestionOutcome.BUSY
            return PortalResponse(question_page(question, problem=str(error)), HTTPStatus.TOO_MANY_REQUESTS)
        except QuestionFailedError as error:
            return PortalResponse(question_page(question, problem=str(error)), HTTPStatus.BAD_GATEWAY)
        finally:
            self._metrics.question_ended(outcome, time.monotonic() - started)

    def _is_addressed_by_its_name(self, headers: Mapping[str, str]) -> bool:
        """Return True if the name is the portal's.

        A page of another site may have had its name resolve to this machine.
        """
        try:
            address = urlsplit(f"//{headers.get('host', '')}")
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


def _dashboard(dashboards: DashboardPages, uid: str) -> PortalResponse:
    return PortalResponse(dashboards.page(uid))


def _report(file: Path) -> PortalResponse:
    try:
        return _whole_file(file.read_text(encoding="utf-8"))
    except OSError:
        return _problem(HTTPStatus.NOT_FOUND, "There is no report yet: make demo writes it.")


def _whole_file(page: str) -> PortalResponse:
    # It is one file, with its style and scripts in it: these scripts run, and no other ones.
    policy = (
        f"default-src 'none'; script-src {' '.join(script_hashes(page))}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return PortalResponse(page, policy=policy)


def _asset(path: str) -> PortalResponse:
    return PortalResponse((_FILES / path[1:]).read_text(encoding="utf-8"), content_type=_ASSETS[path])


def _problem(status: HTTPStatus, text: str) -> PortalResponse:
    return PortalResponse(problem_page(status.phrase, text), status)


def _not_allowed(allowed: str) -> PortalResponse:
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return PortalResponse(problem_page(status.phrase, "Use a page of the portal."), status, more=(("allow", allowed),))
