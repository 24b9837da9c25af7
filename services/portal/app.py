"""The HTTP application of the portal: routes requests, and refuses those that no page of its own has made.

Source: RSGI 1.5 (https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md).
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.observability.faults import load_faults
from gamelake.serving.sql.questions import Question
from services.portal.docs import DOCS, DocsSite
from services.portal.figures import FigureSource
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
        self._docs = DocsSite(settings.docs) if settings.docs else None
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
        if self._docs is not None:
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

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request."""
        # Pages wait for other services and for queries.
        response = await asyncio.to_thread(self.respond, scope.method, scope.path, dict(scope.headers.items()))
        headers = [("content-type", response.content_type), ("content-security-policy", response.policy)]
        # What a client sends in a body is not read.
        connection = [("connection", "close")] if scope.method == "POST" else []
        body = response.body.encode() if response.file is None else response.file
        protocol.response_bytes(int(response.status), [*headers, *_HEADERS, *response.more, *connection], body)

    def respond(self, method: str, path: str, headers: Mapping[str, str]) -> PortalResponse:
        """The response to a request.

        Args:
            method: the method, in upper case.
            path: without a query.
            headers: by names in lower case.
        """
        if path == "/healthz":
            return PortalResponse("ok\n", content_type="text/plain; charset=utf-8")
        if path == "/metrics" and self._is_addressed_by_its_name(headers):
            return PortalResponse("", content_type=CONTENT_TYPE_PLAIN_0_0_4, file=self._metrics.exposition())
        response = self._response(method, path, headers)
        self._metrics.responded(response.status)
        return response

    def _response(self, method: str, path: str, headers: Mapping[str, str]) -> PortalResponse:
        if not self._is_addressed_by_its_name(headers):
            return _problem(HTTPStatus.MISDIRECTED_REQUEST, "This address is not the portal's.")
        try:
            return self._page(method, path, headers)
        except LineageUnavailableError as error:
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

    def _home(self) -> PortalResponse:
        return PortalResponse(
            home_page(self._figures.overview(), self._questions.all(), self._links, self._settings.consoles)
        )

    def _status(self) -> PortalResponse:
        return PortalResponse(status_part(self._figures.overview(), self._settings.consoles))

    def _practice(self) -> Practice:
        states = None
        if self._switchboard is not None:
            with suppress(SwitchboardUnavailableError):
                states = self._switchboard.states()
        return Practice(self._figures.overview(), states, self._faults, self._settings.consoles)

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
        found = None if self._docs is None else self._docs.get(path)
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
        """Whether the name is the portal's: a page of another site may have had its name resolve to this machine."""
        host = urlsplit(f"//{headers.get('host', '')}").hostname
        return host in self._settings.names


def _changes(switchboard: Switchboard, faults: Sequence[str]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each path that changes something, with the change: no other ones can be asked for."""
    for rate in LOADS:
        yield f"{LOAD}{rate}", partial(switchboard.set_load, rate)
    for name in faults:
        yield f"{FAULTS}{name}/on", partial(switchboard.switch, name, on=True)
        yield f"{FAULTS}{name}/off", partial(switchboard.switch, name, on=False)


def _is_from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether no other site's page has made the request; programs send neither header.

    Source: Fetch Metadata, https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    return origin is None or urlsplit(origin).netloc == headers.get("host")


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
