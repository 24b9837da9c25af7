"""Commits: an attempt reads the newest version and puts the next one; after a conflict there is another attempt."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from deltalake.exceptions import CommitFailedError

from gamelake.delta.log.codec import Action, encode_entry, entry_path
from gamelake.model.errors import TransientError
from gamelake.objects.store import Store

T = TypeVar("T")


class CommitConflictError(Exception):
    """Another writer has committed the same version first; nothing was committed."""


def put_entry(store: Store, table: str, version: int, actions: Iterable[Action]) -> bool:
    """Commit a version of a table: put its log entry, if no other writer has put that version.

    Only this function writes log entries.

    Returns:
        False if another writer has committed the version; nothing was committed then.
    """
    return store.put_new(entry_path(table, version), encode_entry(actions))


def commit_with_retry(table: str, attempts: int, attempt: Callable[[], T], failure: Exception | None = None) -> T:
    """Call `attempt` until it returns.

    Args:
        table: the table's path, for the message.
        attempts: the number of calls at most.
        attempt: opens the table at its newest version and commits the next one. It raises CommitConflictError, or
            delta-rs raises CommitFailedError, if another writer has committed that version. Other errors are not
            retried.
        failure: raised instead of a TransientError if every attempt ends in a conflict.

    Raises:
        TransientError: every attempt ended in a conflict, and there is no `failure`.
    """
    conflict: Exception | None = None
    for _ in range(attempts):
        try:
            return attempt()
        except (CommitConflictError, CommitFailedError) as error:
            conflict = error
    message = f"{table}: other writers committed first at each of {attempts} attempts; try again"
    raise failure or TransientError(message) from conflict
