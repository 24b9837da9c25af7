"""The HTTP application of one process: routes requests, and refreshes what they need in the background.

Source: RSGI 1.5 (https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md).
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gamelake.model.logs import event_logger
from gamelake.privacy.vault.vault import VaultUnavailableError
from services.gateway import metrics
from services.gateway.authentication import Keyring
from services.gateway.cached_answer import CachedAnswer
from services.gateway.events.endpoint import EventsEndpoint
from services.gateway.flags.endpoint import FLAGS_PATH, FlagsEndpoint
from services.gateway.limits.quotas import Quotas
from services.gateway.personal.vault_client import PlayerStore
from services.gateway.responses import Response, content_response, method_not_allowed, status_response
from services.gateway.support_endpoint import PLAYERS_PATH, SupportEndpoint

log = event_logger(__name__)

EVENTS_PATH = "/v1/events"
_PAGES = Path(__file__).parent / "pages"
_REFRESH_SECONDS = 2
_READINESS_TIMEOUT = timedelta(seconds=2)
_PAGE_AGE = timedelta(seconds=1)
_SHUTDOWN_TIMEOUT = timedelta(seconds=20)
_TEXT, _HTML, _YAML = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/yaml"

ServeMetrics = Callable[[], contextlib.AbstractContextManager[None]]
Page = Callable[[], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of the API."""

    events: EventsEndpoint
    support: SupportEndpoint
    flags: FlagsEndpoint


MakeEndpoints = Callable[[], Endpoints]


class App:
    """One process of the service. The endpoints connect to Kafka and the vault once the event loop runs.

    `serve_metrics` serves them, at a port that games can't reach, until the end of the block.
    """

    def __init__(
        self,
        make_endpoints: MakeEndpoints,
        keyring: Keyring,
        quotas: Quotas,
        serve_metrics: ServeMetrics,
    ) -> None:
        self._make_endpoints = make_endpoints
        self._keyring = keyring
        self._quotas = quotas
        self._serve_metrics = serve_metrics
        self._metrics = contextlib.ExitStack()
        self._endpoints: Endpoints | None = None
        self._refreshing: asyncio.Task[None] | None = None
        # Requests for readiness take one thread at most, and none that the vault needs.
        threads = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._is_ready = CachedAnswer(self._is_kafka_reachable, threads, _PAGE_AGE)
        self._pages: dict[str, Page] = {
            "/": self._welcome,
            "/openapi.yaml": self._openapi,
            "/healthz": self._health,
            "/readyz": self._readiness,
        }

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Connect to Kafka and the vault, and start the background refresh."""
        self._endpoints = self._make_endpoints()
        self._refreshing = loop.create_task(self._refresh_continuously())
        self._metrics.enter_context(self._serve_metrics())

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop; records that wait for Kafka get time to be confirmed."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(self._refreshing)
        if self._endpoints is not None:
            events, support = self._endpoints.events, self._endpoints.support
            events.producer.close(_SHUTDOWN_TIMEOUT)
            events.preparer.players.close()
            events.tracer.close()
            support.audit.close(_SHUTDOWN_TIMEOUT)
            support.vault.close()
        self._metrics.close()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request."""
        response = await self._respond(scope, protocol)
        headers = response.headers
        if scope.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            # Another reader may find another end of the body: nothing that follows may be read as a request.
            headers = [*headers, ("connection", "close")]
        protocol.response_bytes(int(response.status), headers, response.body)

    async def _respond(self, scope: Any, protocol: Any) -> Response:  # noqa: ANN401 # see above
        if self._endpoints is not None:
            if scope.path == EVENTS_PATH:
                if scope.method != "POST":
                    return method_not_allowed("POST")
                return await self._endpoints.events.respond(scope, protocol)
            if scope.path.startswith(PLAYERS_PATH):
                return await self._respond_to_support(scope, self._endpoints)
            if scope.path == FLAGS_PATH or scope.path.startswith(f"{FLAGS_PATH}/"):
                return await self._endpoints.flags.respond(scope, protocol)
        return await self._respond_with_page(scope)

    async def _respond_to_support(self, scope: Any, endpoints: Endpoints) -> Response:  # noqa: ANN401 # see above
        response = await endpoints.support.respond(scope)
        if scope.method == "DELETE" and response.status is HTTPStatus.NO_CONTENT:
            # In this process at once; in the others with their next refresh.
            await self._apply_erasures(endpoints.events.preparer.players)
        return response

    async def _respond_with_page(self, scope: Any) -> Response:  # noqa: ANN401 # see above
        page = self._pages.get(scope.path)
        if page is None:
            return status_response(HTTPStatus.NOT_FOUND)
        if scope.method != "GET":
            return method_not_allowed("GET")
        return await page()

    async def _refresh_continuously(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                await self._refresh()
            except Exception as error:
                # Without further refreshes the process would use erased players for ever. The text may be personal.
                log.error(  # noqa: TRY400
                    "refresh_failed",
                    error_type=type(error).__name__,
                    seconds=_REFRESH_SECONDS,
                    action="keys, erasures, quotas or experiments may be old; tries again after these seconds",
                )

    async def _refresh(self) -> None:
        self._keyring.refresh()
        if self._endpoints is not None:
            events = self._endpoints.events
            metrics.set_waiting(events.producer.waiting_records)
            metrics.set_reserved(events.memory.reserved, events.preparer.players.cached_bytes)
            metrics.set_memory()
            await self._apply_erasures(events.preparer.players)
        self._quotas.refresh(self._keyring.all_keys(), time.time())
        if self._endpoints is not None:
            # Last: experiments must not hold up what events need.
            await asyncio.to_thread(self._endpoints.flags.experiments.refresh)

    async def _apply_erasures(self, players: PlayerStore) -> None:
        started = time.perf_counter()
        try:
            await players.apply_erasures()
            metrics.set_vault_response(time.perf_counter() - started)
        except VaultUnavailableError as error:
            metrics.set_vault_response(None)
            log.warning(
                "erasures_unreadable",
                error=error,
                seconds=_REFRESH_SECONDS,
                action="tries again after these seconds",
            )

    async def _welcome(self) -> Response:
        return content_response(_HTML, (_PAGES / "welcome.html").read_bytes())

    async def _openapi(self) -> Response:
        return content_response(_YAML, (_PAGES / "openapi.yaml").read_bytes())

    async def _health(self) -> Response:
        return content_response(_TEXT, b"ok\n")

    async def _readiness(self) -> Response:
        """200 if Kafka is reachable; otherwise a load balancer sends requests to another instance."""
        if await self._is_ready.get():
            return content_response(_TEXT, b"ready\n")
        return content_response(_TEXT, b"Kafka does not answer\n", HTTPStatus.SERVICE_UNAVAILABLE)

    def _is_kafka_reachable(self) -> bool:
        return self._endpoints is not None and self._endpoints.events.producer.is_kafka_reachable(_READINESS_TIMEOUT)
