"""What a game puts into itself to send events to the gateway: it loses none that it has taken, and play never waits.

It knows HTTP and the gateway's contract; nothing of the server's code, of Kafka, or of what the events mean.
"""

from .batches import Figures, Form, Outcome, Parcel, Refusal, Rejection
from .client import Client
from .errors import BufferFileError, BufferFullError, ClosedError, SdkError
from .options import Backoff, BatchLimits, BufferLimits, Options, Overflow, Packing
from .transport import Credentials, HttpTransport, Reply, Transport, UnreachableError

__all__ = [
    "Backoff",
    "BatchLimits",
    "BufferFileError",
    "BufferFullError",
    "BufferLimits",
    "Client",
    "ClosedError",
    "Credentials",
    "Figures",
    "Form",
    "HttpTransport",
    "Options",
    "Outcome",
    "Overflow",
    "Packing",
    "Parcel",
    "Refusal",
    "Rejection",
    "Reply",
    "SdkError",
    "Transport",
    "UnreachableError",
]
