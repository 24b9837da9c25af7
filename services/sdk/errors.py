"""What a game may have to deal with when it hands an event over.

SdkError
├── BufferFullError   there is no room for the event, and nothing may be dropped for it
├── BufferFileError   the buffer's file can't be used
└── ClosedError       the client was closed

What becomes of an event that was taken is no error: it is an outcome.
"""


class SdkError(Exception):
    """The client did not take the event."""


class BufferFullError(SdkError):
    """There is no room for the event, and nothing may be dropped for it."""


class BufferFileError(SdkError):
    """The buffer's file can't be read or written, or another client has it."""


class ClosedError(SdkError):
    """The client was closed."""
