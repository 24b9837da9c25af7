"""The errors of the SDK: of a client when an event is handed over, and of files of experiments.

SdkError
├── BufferFullError       the buffer is full, and no event may be dropped
├── BufferFileError       the buffer's file can't be used
├── ClosedError           the client is closed
└── ExperimentFileError   a file of experiments is damaged, expired or wrongly signed

The result for an event that was buffered is not an error but a `BatchOutcome`.
"""


class SdkError(Exception):
    """The SDK has not done what it was called for."""


class BufferFullError(SdkError):
    """The buffer is full, and no event may be dropped."""


class BufferFileError(SdkError):
    """The buffer's file can't be read or written, or another client uses it."""


class ClosedError(SdkError):
    """The client is closed."""


class ExperimentFileError(SdkError):
    """A file of experiments is damaged, expired or wrongly signed."""
