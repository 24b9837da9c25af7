"""Optimistic commits: an attempt reads the newest version and commits the next; a conflict starts another attempt."""

from collections.abc import Callable
from typing import TypeVar

from deltalake.exceptions import CommitFailedError

from gamelake.model.errors import TransientError

T = TypeVar("T")


class CommitConflictError(Exception):
    """Another writer has committed the version that this commit was made for; nothing was committed."""


def commit_with_retry(table: str, attempts: int, attempt: Callable[[], T], failure: Exception | None = None) -> T:
    """Call `attempt` until it returns.

    Args:
        table: for the message.
        attempts: how often at most.
        attempt: opens the table at its newest version and commits the next one; raises CommitConflictError, or
            delta-rs its CommitFailedError, if another writer has committed that version.
        failure: raised in the place of a TransientError if every attempt ends in a conflict.

    Raises:
        TransientError: every attempt ended in a conflict.
    """
    conflict: Exception | None = None
    for _ in range(attempts):
        try:
            return attempt()
        except (CommitConflictError, CommitFailedError) as error:
            conflict = error
    message = f"{table}: other writers committed first at each of {attempts} attempts; try again"
    raise failure or TransientError(message) from conflict
