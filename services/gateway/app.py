"""The service's HTTP side: which page is whose.

Source: RSGI 1.5 (https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md).
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gamelake.privacy.vault.vault import VaultUnavailableError
from services.gateway import metrics
from services.gateway.authentication import Keyring
from services.gateway.events_endpoint import EventsEndpoint
from services.gateway.personal.vault_client import Guard
from services.gateway.responses import Answer, page, problem, wrong_method
from services.gateway.support_endpoint import PLAYERS_PATH, SupportEndpoint

log = logging.getLogger(__name__)

EVENTS_PATH = "/v1/events"
_PAGES = Path(__file__).parent / "pages"
_REFRESH_SECONDS = 2
_READY_PATIENCE = timedelta(seconds=2)
_CLOSE_PATIENCE = timedelta(seconds=20)
_TEXT, _HTML, _YAML = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/yaml"

MakeEndpoint = Callable[[], EventsEndpoint]
MakeSupport = Callable[[], SupportEndpoint]
Page = Callable[[], Awaitable[Answer]]


class App:
    """One process of the service; what talks to Kafka is made once the process has its event loop."""

    def __init__(self, make_endpoint: MakeEndpoint, make_support: MakeSupport, keyring: Keyring) -> None:
        self._make_endpoint = make_endpoint
        self._make_support = make_support
        self._keyring = keyring
        self._endpoint: EventsEndpoint | None = None
        self._support: SupportEndpoint | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._pages: dict[str, Page] = {
            "/": self._welcome,
            "/openapi.yaml": self._openapi,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/metrics": self._metrics,
        }

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Connect to Kafka; begin to look after keys and figures."""
        self._endpoint = self._make_endpoint()
        self._support = self._make_support()
        self._upkeep = loop.create_task(self._look_after())

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for what is on its way to Kafka."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(self._upkeep)
        if self._endpoint is not None:
            self._endpoint.outbox.close(_CLOSE_PATIENCE)
            self._endpoint.guard.close()
        if self._support is not None:
            self._support.vault.close()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:  # noqa: ANN401 # RSGI's, which has no types
        """Answer a request."""
        answer = await self._answer(scope, protocol)
        protocol.response_bytes(int(answer.status), answer.headers, answer.body)

    async def _answer(self, scope: Any, protocol: Any) -> Answer:  # noqa: ANN401 # see above
        if scope.path == EVENTS_PATH and self._endpoint is not None:
            if scope.method != "POST":
                return wrong_method("POST")
            return await self._endpoint.answer(scope, protocol)
        if scope.path.startswith(PLAYERS_PATH) and self._support is not None and self._endpoint is not None:
            answer = await self._support.answer(scope)
            if scope.method == "DELETE" and answer.status is HTTPStatus.NO_CONTENT:
                # This process at once; the others when they next look.
                await self._let_go_of_the_erased(self._endpoint.guard)
            return answer
        shown = self._pages.get(scope.path)
        if shown is None:
            return problem(HTTPStatus.NOT_FOUND)
        if scope.method != "GET":
            return wrong_method("GET")
        return await shown()

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                await self._look()
            except Exception as error:
                # A process that looked no more would know the forgotten for ever. The text may be personal.
                log.error("keys, erasures and figures: %s; looked at again soon", type(error).__name__)  # noqa: TRY400

    async def _look(self) -> None:
        self._keyring.refresh()
        if self._endpoint is not None:
            metrics.show_waiting(self._endpoint.outbox.waiting_records)
            metrics.show_memory()
            await self._let_go_of_the_erased(self._endpoint.guard)

    async def _let_go_of_the_erased(self, guard: Guard) -> None:
        started = time.perf_counter()
        try:
            await guard.let_go_of_the_erased()
            metrics.show_vault(time.perf_counter() - started)
        except VaultUnavailableError as error:
            metrics.show_vault(None)
            log.warning("who was forgotten can't be asked: %s", error)

    async def _welcome(self) -> Answer:
        return page(_HTML, (_PAGES / "welcome.html").read_bytes())

    async def _openapi(self) -> Answer:
        return page(_YAML, (_PAGES / "openapi.yaml").read_bytes())

    async def _health(self) -> Answer:
        return page(_TEXT, b"ok\n")

    async def _readiness(self) -> Answer:
        """Ready means that Kafka answers: who balances load then sends requests elsewhere."""
        outbox = self._endpoint.outbox if self._endpoint else None
        if outbox is not None and await asyncio.to_thread(outbox.reaches_kafka, _READY_PATIENCE):
            return page(_TEXT, b"ready\n")
        return page(_TEXT, b"Kafka does not answer\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def _metrics(self) -> Answer:
        return page(metrics.CONTENT_TYPE, await asyncio.to_thread(metrics.exposition))
