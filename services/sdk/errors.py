"""The SDK's errors: when a game hands over an event, and when it loads an experiment file.

SdkError
├── BufferFullError       the buffer is full, and no event may be dropped
├── BufferFileError       the buffer's file can't be used
├── ClosedError           the client is closed
└── ExperimentFileError   an experiment file is damaged, expired or wrongly signed

The result for an event that was buffered is not an error but a `BatchOutcome`.
"""


class SdkError(Exception):
    """Base class of the SDK's errors."""


class BufferFullError(SdkError):
    """The buffer is full, and no event may be dropped."""


class BufferFileError(SdkError):
    """The buffer's file can't be read or written, or another client uses it."""


class ClosedError(SdkError):
    """The client is closed."""


class ExperimentFileError(SdkError):
    """An experiment file is damaged, expired or wrongly signed."""
