"""Separates files that can't be read from outages.

If a file's name or content makes the store, a parser or a library raise an error, only that file is refused. Only a
closed list of outages stops the task, which runs again.
"""

from dataclasses import dataclass

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.streaming.files.arrivals.any_names import MissingObjectError, OverwrittenObjectError
from gamelake.streaming.files.formats.events import TooLargeFileError, UnreadableFileError
from gamelake.streaming.outages import OUTAGES

_REASONS: dict[type[Exception], DeadLetterReason | None] = {
    # The newer content has its own notification.
    OverwrittenObjectError: None,
    MissingObjectError: DeadLetterReason.MISSING_FILE,
    TooLargeFileError: DeadLetterReason.FILE_TOO_LARGE,
    UnreadableFileError: DeadLetterReason.UNREADABLE_FILE,
}


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object that is not read.

    Attributes:
        index: of the object in the list of a task's objects.
        reason: of the dead letter; None if newer content has replaced the object.
        detail: of the dead letter.
    """

    index: int
    reason: DeadLetterReason | None
    detail: str


def refusal(index: int, error: Exception) -> RefusedObject:
    """Return the refusal of a file whose name or content raised an error.

    Raises:
        Exception: the error itself, if it is an outage.
    """
    if isinstance(error, OUTAGES):
        raise error
    if type(error) in _REASONS:
        return RefusedObject(index, _REASONS[type(error)], str(error))
    # The text of another error may quote a value.
    return RefusedObject(index, DeadLetterReason.UNREADABLE_FILE, f"the file can't be read ({type(error).__name__})")
