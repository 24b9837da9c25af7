"""A failed refresh of keys, erasures, metrics or experiments does not end the refreshes."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from services.gateway import app as app_module
from services.gateway.app import App, Endpoints
from services.gateway.authentication import GameKey
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


class CountedQuotas(Quotas):
    """Counts its refreshes."""

    refreshes = 0

    def refresh(self, keys: Iterable[GameKey], now: float) -> None:
        """Count, then refresh."""
        self.refreshes += 1
        super().refresh(keys, now)


def run_until(is_enough: Callable[[], bool], players: PlayerStore, quotas: Quotas, experiments: object) -> None:
    """Run the app with its refreshes."""
    producer = SimpleNamespace(waiting_records=0, close=lambda _patience: None)
    endpoint: Any = SimpleNamespace(
        preparer=SimpleNamespace(players=players), producer=producer, tracer=RequestTracer(), memory=MemoryBudget(1)
    )
    support: Any = SimpleNamespace(vault=players, audit=producer)
    keyring: Any = SimpleNamespace(refresh=lambda: None, all_keys=list)
    flags: Any = SimpleNamespace(experiments=experiments)
    app = App(lambda: Endpoints(endpoint, support, flags), keyring, quotas, nullcontext)

    async def run_for_a_while() -> None:
        app.__rsgi_init__(asyncio.get_running_loop())
        async with asyncio.timeout(10):
            while not is_enough():
                await asyncio.sleep(0.001)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(run_for_a_while())
    app.__rsgi_del__(loop)
    loop.close()


def test_a_failed_refresh_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app_module, "_REFRESH_SECONDS", 0.001)
    players = PlayerStore()
    run_until(lambda: players.refreshes >= 3, players, Quotas(None), SimpleNamespace(refresh=lambda: None))

    assert {each["error_type"] for each in logged(caplog, "refresh_failed")} == {"RuntimeError"}
    assert "anna" not in caplog.text


def test_experiments_that_cant_be_refreshed_hold_up_no_quota(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("no such device")

    monkeypatch.setattr(app_module, "_REFRESH_SECONDS", 0.001)
    players, quotas = PlayerStore(), CountedQuotas(None)
    run_until(lambda: players.refreshes >= 4, players, quotas, SimpleNamespace(refresh=fail))

    assert quotas.refreshes
    assert {each["error_type"] for each in logged(caplog, "refresh_failed")} >= {"OSError"}
