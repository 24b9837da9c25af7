"""A portal over no tables, the elements of its pages, a Prometheus with one series, and a question full of markup."""

import json
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, QuestionReader
from services.portal.app import PortalApp, PortalResponse
from services.portal.figures import Overview, ServiceHealth
from services.portal.metrics import metrics_of_process
from services.portal.portfolio import NoPortfolio
from services.portal.prometheus import Prometheus, Sample, Series, samples_of, series_of
from services.portal.questions import Questions
from services.portal.settings import PortalSettings
from tools.embedded.service import REPOSITORY

SQL = REPOSITORY / "sql"
OWN = {"host": "127.0.0.1:17000"}
EVIL = "<script>alert(1)</script>"
QUESTION = Question(
    name="evil",
    title=EVIL + "?",
    grain="a <b>row</b>",
    asked_by="analyst",
    reader=QuestionReader.ANALYST,
    engines=frozenset({QueryEngine.DUCKDB}),
    sql=f"SELECT '{EVIL}'",
)


class Figures:
    """An overview with one service that does not respond."""

    def overview(self) -> Overview:
        """The same at each call."""
        return Overview((ServiceHealth("kafka", is_healthy=True), ServiceHealth("gateway", is_healthy=False)), ())


class Elements(HTMLParser):
    """The elements of a page with their attributes, and those that were not closed in their order."""

    EMPTY = frozenset({"meta", "link", "br", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.found.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes what was opened last."""
        assert self._open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.found if name == tag]


def app(settings: PortalSettings) -> PortalApp:
    """A portal that reads no tables for its first page."""
    return PortalApp(settings, Figures(), Questions(settings), metrics_of_process(), NoPortfolio())


def get(portal: PortalApp, address: str, headers: Mapping[str, str] = OWN) -> PortalResponse:
    """The response to a GET request."""
    path, _, query = address.partition("?")
    return portal.respond("GET", path, headers, query=query)


def response(**result: object) -> bytes:
    """The response of Prometheus with one result."""
    return json.dumps({"status": "success", "data": {"result": [{"metric": {"job": "kafka"}, **result}]}}).encode()


class OneSeries(Prometheus):
    """The values of one series for every query, read from a response as the HTTP API sends it."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = values

    def at(self, moment: float, expression: str) -> list[Sample]:
        """The last value."""
        return list(samples_of(response(value=[moment, self._values[-1]])))

    def over_time(self, expression: str, start: float, end: float, step: int) -> list[Series]:
        """All values, the last one at the end."""
        count = len(self._values)
        return list(
            series_of(
                response(values=[[end - (count - 1 - place) * step, each] for place, each in enumerate(self._values)])
            )
        )
