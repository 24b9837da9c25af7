"""A process goes on looking after keys and erasures, whatever happens to one look."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.gateway import app as serving
from services.gateway.app import App


class Guard:
    """Fails at the first look, with a text that nobody may see."""

    looks = 0

    async def let_go_of_the_erased(self) -> None:
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("anna@example.org")

    def close(self) -> None:
        pass


def test_a_look_that_fails_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "_REFRESH_SECONDS", 0.001)
    guard = Guard()
    outbox = SimpleNamespace(waiting_records=0, close=lambda _patience: None)
    endpoint: Any = SimpleNamespace(guard=guard, outbox=outbox)
    support: Any = SimpleNamespace(vault=guard)
    keyring: Any = SimpleNamespace(refresh=lambda: None)
    app = App(lambda: endpoint, lambda: support, keyring)

    async def look_for_a_while() -> None:
        app.__rsgi_init__(asyncio.get_running_loop())
        async with asyncio.timeout(10):
            while guard.looks < 3:
                await asyncio.sleep(0.001)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(look_for_a_while())
    app.__rsgi_del__(loop)
    loop.close()

    assert "RuntimeError" in caplog.text
    assert "anna" not in caplog.text
