"""The directory of `make dev`: used by one process at a time, and removed on request."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.dev.options import DevError

_LOCK = "lock"


@contextmanager
def occupied(directory: Path) -> Iterator[None]:
    """Reserve a directory for this process until the end of the block. The system frees it if the process is killed.

    Raises:
        DevError: another process has it.
    """
    with (directory / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevError(f"make dev runs already in {directory}: end it by Ctrl-C first") from None
        yield


def remove(directory: Path, *, is_confirmed: Callable[[], bool], dry_run: bool) -> bool:
    """Remove a directory of `make dev` with all data, after asking.

    Returns:
        Whether it is gone, or is left as asked.

    Raises:
        DevError: `make dev` runs in it, or it is the directory of something else.
    """
    if not directory.is_dir() or not any(directory.iterdir()):
        print("There is nothing to remove.")
        return True
    if not (directory / _LOCK).exists():
        raise DevError(f"{directory} is not a directory of make dev")
    with occupied(directory):
        print(f"To be removed, with tables, Kafka's records, the vault and all keys:\n  {directory}")
        if dry_run:
            return True
        if not is_confirmed():
            print("Nothing was removed.")
            return False
        shutil.rmtree(directory)
    return True
