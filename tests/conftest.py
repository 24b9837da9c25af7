"""Shared by all tests: folders are marks, and a missing service is a failure in CI only."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from gamelake.delta import tables
from gamelake.delta.log.checkpoints import CHECKPOINT_EVERY
from gamelake.objects.store import Location
from gamelake.session import spark_session
from tools.embedded.java import spark_environment
from tools.embedded.process import ServiceMissingError

TESTS = Path(__file__).parent
JARS = TESTS.parent / "build" / "jars" / "spark"
MARKED_FOLDERS = frozenset({"spark", "embedded", "stack", "kubernetes"})
SLOWEST_FIRST = ("kubernetes", "stack", "embedded", "spark", "unit")


def pytest_configure() -> None:
    """Make the test process like the process of a program."""
    # A shell starts background jobs that ignore Ctrl-C, as do their children; tests send it to theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A worker of pytest-xdist runs no file: PySpark's Connect, which Great Expectations imports, takes such a
    # process for its own doctests and ends it.
    main = sys.modules["__main__"]
    if not hasattr(main, "__file__"):
        main.__file__ = pytest.__file__


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its folder, so that `-m "not spark"` needs no mark in any file; put the slow folders first.

    Tests that are marked `slow` run with SLOW_TESTS=1 only.

    Workers take whole files in this order: the many short ones at the end fill what time the long ones leave. Unit
    tests, which switch off sockets, come after all that need them.
    """
    for item in items:
        if _folder(item) in MARKED_FOLDERS:
            item.add_marker(_folder(item))
    items.sort(key=lambda item: SLOWEST_FIRST.index(_folder(item)))
    if os.environ.get("SLOW_TESTS") != "1":
        left_out = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Exclude what the collection has made, a million objects, from later garbage collections, which took a second."""
    gc.collect()
    gc.freeze()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.fixture(scope="session")
def missing_service() -> Callable[[str], NoReturn]:
    """End the test as a service is missing: skipped locally, failed in CI, which must not pass by skipping."""

    def end_test(reason: str) -> NoReturn:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have every service: {reason}", pytrace=False)
        pytest.skip(reason)

    return end_test


@pytest.fixture(scope="session")
def spark(missing_service: Callable[[str], NoReturn]) -> Iterator[SparkSession]:
    """A session as the jobs have it: the only one of this process, which can have no other."""
    try:
        os.environ |= spark_environment()
    except ServiceMissingError as error:
        missing_service(str(error))
    if not list(JARS.glob("*.jar")):
        missing_service("Spark's jars are missing: run make setup")
    session = spark_session("tests", Location(uri="file:///"), JARS)
    yield session
    session.stop()


@pytest.fixture
def checkpoints_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables get log checkpoints at the same versions, 49, 99 and so on; without this each table has its own."""
    monkeypatch.setattr(
        tables, "is_log_checkpoint_due", lambda _table, version, _files: (version + 1) % CHECKPOINT_EVERY == 0
    )
