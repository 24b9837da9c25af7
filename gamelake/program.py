"""The frame of every program: logs, imports, exit codes by group of errors, stop signals, several jobs in a process."""

import atexit
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from importlib import import_module
from importlib.abc import MetaPathFinder
from threading import Event
from typing import NoReturn

from gamelake.model.errors import DataLossError, GamelakeError, StartupError, TransientError
from gamelake.model.logs import LogFormat, event_logger, set_up_logs

OK, FAILED = 0, 1
# Documented in docs/operations.md: a supervisor restarts after 1 and 4; 2 and 3 need an operator.
_EXIT_CODES: tuple[tuple[type[GamelakeError], int], ...] = ((StartupError, 2), (DataLossError, 3), (TransientError, 4))

_PAUSES = (15.0, 30.0, 60.0, 120.0, 300.0)
_AGAIN = "starts again after these seconds"

log = event_logger(__name__)


def run(main: Callable[[], int], *, is_command: bool = False) -> NoReturn:
    """Set up the logs, run a program's main function and end the process with its exit code.

    Args:
        main: the function.
        is_command: whether a person runs the program and waits for it. It then prints an error as a sentence, not as a
            line of a log, unless logs are JSON. At a terminal every program does.
    """
    is_command = (is_command or sys.stderr.isatty()) and os.environ.get("GAMELAKE_LOG_FORMAT") != LogFormat.JSON
    try:
        set_up_logs(os.environ)
        code = main()
    except GamelakeError as error:
        code = next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), FAILED)
        # The message is the remedy, the stack would be noise.
        if is_command:
            sys.stderr.write(f"gamelake: {error}\n")
            _leave(code)
        log.error("program_failed", exit_code=code, error_type=type(error).__name__, error=error)  # noqa: TRY400
    except Exception as error:
        code = FAILED
        log.exception("program_failed", exit_code=code, error_type=type(error).__name__, error=error)
    _leave(code)


class _WithoutPandas(MetaPathFinder):
    """Finds every module where it is, but pandas nowhere."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise the error of a module that is not installed, if it is pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def leave_pandas_out() -> None:
    """Stop pyarrow from converting objects of pandas.

    To see whether there are any, it loads pandas for its first array.

    That takes 0.7 CPU seconds and 40 MB, for nothing in a program without pandas. A conversion to pandas loads it all
    the same; before one, `pyarrow.array` takes an object of pandas for a sequence, whose NaN is not null.
    """
    hiding = _WithoutPandas()
    sys.meta_path.insert(0, hiding)
    try:
        # pyarrow remembers what it has found.
        import_module("pyarrow").array([])
    finally:
        sys.meta_path.remove(hiding)


def _leave(code: int) -> NoReturn:
    """End the process as sys.exit does, but without finalizing the interpreter.

    During finalization CPython ends a thread of Arrow that releases a Python buffer; it is inside C++ code that allows
    no unwinding, and the process aborts (SIGABRT). From 3.14 on, CPython leaves such threads alone.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 # as sys.exit does
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time, in UTC if it has no zone; for the `type` of an argument.

    Raises:
        ValueError: the text is not a time.
    """
    given = datetime.fromisoformat(text)
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def stop_event() -> Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def run_with_restarts(job: Callable[[], None], stop: Event, pauses: Iterable[float] = _PAUSES) -> None:
    """Run a job until it succeeds, next to a more important one: after a failure it starts again.

    Args:
        job: the job; its errors are logged.
        stop: ends the restarts.
        pauses: before each restart, in seconds; the last one also before all further restarts.
    """
    remaining = iter(pauses)
    pause = next(remaining)
    while not stop.is_set():
        try:
            job()
        except GamelakeError as error:
            log.error("job_failed", error_type=type(error).__name__, error=error, seconds=pause, action=_AGAIN)  # noqa: TRY400 # as in `run`
        except Exception as error:
            log.exception("job_failed", error_type=type(error).__name__, error=error, seconds=pause, action=_AGAIN)
        else:
            return
        stop.wait(pause)
        pause = next(remaining, pause)


def run_together(jobs: Mapping[str, Callable[[], None]], stop: Event) -> None:
    """Run each job in a thread; when the first one ends, stop all others and raise its error.

    A failed job must restart as its exit code says, which only the whole process can.
    """
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs.values()]
        wait(running, return_when=FIRST_COMPLETED)
        stop.set()
    for ended in running:
        ended.result()
