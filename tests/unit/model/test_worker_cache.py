"""A process keeps one object of a kind for all of its tasks, or a few; the one that was used longest ago is dropped."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gamelake.model.worker_cache import forget_all, per_worker
from tests.support.failing import failing


@dataclass(eq=False)
class Connection:
    """An object that is costly to make."""

    to: str


@dataclass(eq=False)
class Schema:
    """An object of another kind."""

    name: str


@pytest.fixture(autouse=True)
def _a_new_worker() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


def connected(to: str, most: int = 1) -> Connection:
    return per_worker(Connection, to, lambda: Connection(to), most)


def test_the_next_task_gets_the_same_object() -> None:
    first = connected("a")

    assert connected("a") is first


def test_another_key_evicts_the_object_of_the_kind_and_no_other_kind() -> None:
    first, schema = connected("a"), per_worker(Schema, "a", lambda: Schema("a"))

    connected("b")

    assert per_worker(Schema, "a", lambda: Schema("new")) is schema
    assert connected("a") is not first


def test_an_evicted_object_is_closed() -> None:
    closed: list[str] = []

    for to in ("a", "b", "a"):
        per_worker(Connection, to, lambda to=to: Connection(to), close=lambda made: closed.append(made.to))  # type: ignore[misc]

    assert closed == ["a", "b"]
    forget_all()
    assert closed == ["a", "b", "a"]


def test_the_least_recently_used_is_evicted() -> None:
    a, b = connected("a", 2), connected("b", 2)
    assert connected("a", 2) is a

    connected("c", 2)

    assert connected("a", 2) is a
    assert connected("b", 2) is not b


def test_an_object_that_can_not_be_made_is_made_by_the_next_task() -> None:
    with pytest.raises(OSError, match="refused"):
        per_worker(Connection, "a", failing(OSError("refused")))

    assert connected("a").to == "a"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_forked_process_makes_its_own_objects() -> None:
    first = connected("a")

    child = os.fork()
    if child == 0:
        os._exit(0 if connected("a") is not first else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
