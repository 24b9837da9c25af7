"""The errors of a client when an event is handed over.

SdkError
├── BufferFullError   the buffer is full, and no event may be dropped
├── BufferFileError   the buffer's file can't be used
└── ClosedError       the client is closed

The result for an event that was buffered is not an error but a `BatchOutcome`.
"""


class SdkError(Exception):
    """The client has not buffered the event."""


class BufferFullError(SdkError):
    """The buffer is full, and no event may be dropped."""


class BufferFileError(SdkError):
    """The buffer's file can't be read or written, or another client uses it."""


class ClosedError(SdkError):
    """The client is closed."""
