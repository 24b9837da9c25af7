"""How every program of Gamelake starts and ends: logging, and exit codes that say what must happen next."""

import atexit
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from threading import Event
from typing import NoReturn

from gamelake.model.errors import DataLossError, GamelakeError, StartupError, TransientError

OK, FAILED = 0, 1
# Documented in docs/operations.md: a supervisor restarts after 1 and 4, and leaves 2 and 3 to a person.
_EXIT_CODES: tuple[tuple[type[GamelakeError], int], ...] = ((StartupError, 2), (DataLossError, 3), (TransientError, 4))

_PAUSES = (15.0, 30.0, 60.0, 120.0, 300.0)

# Libraries that tell of each call.
_TALKATIVE = ("great_expectations", "httpx2", "openlineage", "py4j", "sqlglot")

log = logging.getLogger(__name__)


def run(main: Callable[[], int]) -> NoReturn:
    """Run a program's main function and leave the process with its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    for library in _TALKATIVE:
        logging.getLogger(library).setLevel(logging.WARNING)
    try:
        code = main()
    except GamelakeError as error:
        log.error("%s: %s", type(error).__name__, error)  # noqa: TRY400 # the message is the remedy, the stack is noise
        code = next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), FAILED)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process as sys.exit does, but for taking the interpreter apart.

    A thread of Arrow that gives back a Python buffer while that goes on is ended inside C++ code that allows no
    unwinding, and the process with it (SIGABRT); CPython lets such threads be from 3.14 on.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 # what sys.exit would have come to
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def moment(text: str) -> datetime:
    """A time as a person gives it, in UTC where they give no zone; `type` of an argument.

    Raises:
        ValueError: it is none.
    """
    given = datetime.fromisoformat(text)
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def stop_event() -> Event:
    """An event that SIGTERM and SIGINT set."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def run_with_restarts(job: Callable[[], None], stop: Event, pauses: Iterable[float] = _PAUSES) -> None:
    """Run a job beside a more important one: when it fails it begins anew, after longer and longer pauses (seconds).

    Whatever its error says must happen next is in the log; the last pause is that of all further failures.
    """
    remaining = iter(pauses)
    pause = next(remaining)
    while not stop.is_set():
        try:
            job()
        except GamelakeError as error:
            log.error("%s: %s; again in %.0f s", type(error).__name__, error, pause)  # noqa: TRY400 # as in `run`
        except Exception:
            log.exception("again in %.0f s", pause)
        else:
            return
        stop.wait(pause)
        pause = next(remaining, pause)


def run_together(jobs: Mapping[str, Callable[[], None]], stop: Event) -> None:
    """Run each in a thread; the first that ends has all others asked to end too, and its error is raised.

    One that has failed must start again as its exit code says, which only the whole process can.
    """
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs.values()]
        wait(running, return_when=FIRST_COMPLETED)
        stop.set()
    for ended in running:
        ended.result()
