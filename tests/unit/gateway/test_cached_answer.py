"""An answer is computed once for all who ask for it at about the same time."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from services.gateway.cached_answer import CachedAnswer

FOR_EVER, NO_TIME = timedelta(hours=1), timedelta(0)


class Counting:
    """Counts its calls, each of which waits for `go_on`, and fails for the first if it should."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls = 0
        self.go_on = threading.Event()
        self._fails = fails

    def __call__(self) -> int:
        """Return the number of the call."""
        self.calls += 1
        assert self.go_on.wait(10)
        if self._fails and self.calls == 1:
            raise ZeroDivisionError
        return self.calls


def run(test: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 # what the test returns
    return asyncio.run(asyncio.wait_for(test, timeout=10))


def test_all_who_ask_at_once_get_one_answer() -> None:
    counting = Counting()

    async def ask() -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            answer = CachedAnswer(counting, pool, NO_TIME)
            asked = [asyncio.create_task(answer.get()) for _ in range(100)]
            await asyncio.sleep(0)
            asked[0].cancel()
            counting.go_on.set()
            return await asyncio.gather(*asked[1:])

    assert run(ask()) == [1] * 99


@pytest.mark.parametrize(("max_age", "answers"), [(FOR_EVER, [1, 1]), (NO_TIME, [1, 2])])
def test_an_answer_is_used_until_it_is_too_old(max_age: timedelta, answers: list[int]) -> None:
    counting = Counting()
    counting.go_on.set()

    async def ask() -> list[int]:
        with ThreadPoolExecutor(1) as pool:
            answer = CachedAnswer(counting, pool, max_age)
            return [await answer.get(), await answer.get()]

    assert run(ask()) == answers


def test_after_an_error_the_next_one_who_asks_gets_an_answer() -> None:
    counting = Counting(fails=True)
    counting.go_on.set()

    async def ask() -> int:
        with ThreadPoolExecutor(1) as pool:
            answer = CachedAnswer(counting, pool, NO_TIME)
            with pytest.raises(ZeroDivisionError):
                await answer.get()
            return await answer.get()

    assert run(ask()) == 2
