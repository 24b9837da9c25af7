"""The SDK by which a game sends events to the ingest gateway: it loses no buffered event, and `send` never waits.

It also assigns players to variants of experiments.

It knows HTTP and the gateway's API; nothing of the server's code, of Kafka, or of the meaning of events.
"""

from .batches import BatchOutcome, ClientStats, EventFormat, EventGroup, Refusal, Rejection
from .client import Client
from .errors import BufferFileError, BufferFullError, ClosedError, ExperimentFileError, SdkError
from .experiment_file import ExperimentFile
from .experiments import Experiment
from .flags import FlagPlayer, Flags
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
    "ExperimentFile",
    "ExperimentFileError",
    "FlagPlayer",
    "Flags",
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
