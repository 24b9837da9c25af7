"""A failed refresh of keys, erasures and metrics does not end the refreshes."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from services.gateway import app as app_module
from services.gateway.app import App, Endpoints
from services.gateway.limits.memory_budget import MemoryBudget
from services.gateway.limits.quotas import Quotas
from services.gateway.traces import RequestTracer
from tests.support.logged import logged


class PlayerStore:
    """Fails in the first refresh, with a personal text."""

    refreshes = 0

    async def apply_erasures(self) -> None:
        self.refreshes += 1
        if self.refreshes == 1:
            raise RuntimeError("anna@example.org")

    cached_bytes = 0

    def close(self) -> None:
        pass


def test_a_failed_refresh_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app_module, "_REFRESH_SECONDS", 0.001)
    players = PlayerStore()
    producer = SimpleNamespace(waiting_records=0, close=lambda _patience: None)
    endpoint: Any = SimpleNamespace(
        preparer=SimpleNamespace(players=players), producer=producer, tracer=RequestTracer(), memory=MemoryBudget(1)
    )
    support: Any = SimpleNamespace(vault=players, audit=producer)
    keyring: Any = SimpleNamespace(refresh=lambda: None, all_keys=list)
    flags: Any = SimpleNamespace(experiments=SimpleNamespace(refresh=lambda: None))
    app = App(lambda: Endpoints(endpoint, support, flags), keyring, Quotas(None), nullcontext)

    async def run_for_a_while() -> None:
        app.__rsgi_init__(asyncio.get_running_loop())
        async with asyncio.timeout(10):
            while players.refreshes < 3:
                await asyncio.sleep(0.001)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(run_for_a_while())
    app.__rsgi_del__(loop)
    loop.close()

    assert {each["error_type"] for each in logged(caplog, "refresh_failed")} == {"RuntimeError"}
    assert "anna" not in caplog.text
