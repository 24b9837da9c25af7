"""How every program of Gamelake starts and ends: logging, and exit codes that say what must happen next."""

import logging
import signal
import sys
from collections.abc import Callable
from threading import Event

from gamelake.errors import DataLossError, GamelakeError, StartupError, TransientError

OK, FAILED = 0, 1
# Documented in docs/operations.md: a supervisor restarts after 1 and 4, and leaves 2 and 3 to a person.
_EXIT_CODES: tuple[tuple[type[GamelakeError], int], ...] = ((StartupError, 2), (DataLossError, 3), (TransientError, 4))

log = logging.getLogger(__name__)


def run(main: Callable[[], int]) -> None:
    """Run a program's main function and leave the process with its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        code = main()
    except GamelakeError as error:
        log.error("%s: %s", type(error).__name__, error)  # noqa: TRY400 # the message is the remedy, the stack is noise
        code = next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), FAILED)
    logging.shutdown()
    sys.exit(code)


def stop_event() -> Event:
    """An event that SIGTERM and SIGINT set."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
