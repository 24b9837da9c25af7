"""Encodes the events of a file as Kafka values, and keeps the rows of the file that are not events."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool, PtarsConfig

from gamelake.schemas.decoder import Rejects
from gamelake.schemas.framing import frame_header

_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC")
_NOTHING = pa.scalar(b"", pa.binary())

# The largest event of a file, in bytes. Kafka accepts 1 MiB by default.
LARGEST_EVENT = 8 * 2**20
# Records are read in parts of this many bytes. One part, with the data derived from it, is in memory at a time.
PART_BYTES = 8 * 2**20
PART_RECORDS = 50_000
# The number of records that the detection of a format examines.
FIRST_RECORDS = 100


class UnreadableFileError(Exception):
    """A file that can't be read in its format; none of its events is ingested."""


class TooLargeFileError(Exception):
    """A file that is larger than a limit; none of its events is ingested."""


@dataclass(frozen=True, slots=True)
class FileEvents:
    """Some events of a file, in order.

    Attributes:
        values: binary, one per row: the framed event. For a rejected row it is the content of the file, or null if that
            must not be kept.
        rejects: the rejected rows, ascending, with their reasons.
    """

    values: pa.BinaryArray
    rejects: Rejects = field(default_factory=Rejects)


class Framer:
    """Encodes columns of the contract's event as framed Protobuf, as in Kafka.

    Args:
        message: the event of the contract.
        schema_id: of the schema in the registry, for the header.

    Attributes:
        message: the event of the contract.
    """

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self.message = message
        self._handler = HandlerPool([message.file], config=_CONFIG).get_for_message(message)
        self._class = GetMessageClass(message)
        self._header = pa.scalar(frame_header(schema_id), pa.binary())

    @property
    def schema(self) -> pa.Schema:
        """The columns of the message, as `values` accepts them."""
        return self._handler.schema()

    def is_event(self, body: bytes) -> bool:
        """Return True if a body is a message with at least one field of the contract."""
        try:
            return bool(self._class.FromString(body).ListFields())
        except Exception:  # the package's errors are not all of one class
            return False

    def columns(self, bodies: pa.BinaryArray) -> pa.RecordBatch:
        """Decode Protobuf messages (binary) to the columns of `schema`, one row per message, in order.

        Raises:
            ValueError: a body is not such a message.
        """
        return self._handler.array_to_record_batch(bodies)

    def values(self, columns: pa.RecordBatch) -> pa.BinaryArray:
        """Encode each row of a batch with the columns of `schema` as a Kafka value (binary), in order."""
        return self.framed(self._handler.record_batch_to_array(columns))

    def framed(self, bodies: pa.BinaryArray) -> pa.BinaryArray:
        """Add the header to each message (binary), which makes it a Kafka value (binary), in order."""
        return pc.binary_join_element_wise(self._header, bodies, _NOTHING)
