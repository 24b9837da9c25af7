"""The SDK by which a game sends events to the ingest gateway: it loses no buffered event, and `send` never waits.

It knows HTTP and the gateway's API; nothing of the server's code, of Kafka, or of the meaning of events.
"""

from .batches import BatchOutcome, ClientStats, EventFormat, EventGroup, Refusal, Rejection
from .client import Client
from .errors import BufferFileError, BufferFullError, ClosedError, SdkError
from .experiments import Experiment
from .options import Backoff, BatchLimits, BufferLimits, Compression, Options, Overflow
from .transport import Credentials, HttpTransport, Reply, Transport, UnreachableError

__all__ = [
    "Backoff",
    "BatchLimits",
    "BatchOutcome",
    "BufferFileError",
    "BufferFullError",
    "BufferLimits",
    "Client",
    "ClientStats",
    "ClosedError",
    "Compression",
    "Credentials",
    "EventFormat",
    "EventGroup",
    "Experiment",
    "HttpTransport",
    "Options",
    "Overflow",
    "Refusal",
    "Rejection",
    "Reply",
    "SdkError",
    "Transport",
    "UnreachableError",
]
