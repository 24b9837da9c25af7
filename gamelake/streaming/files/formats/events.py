"""Events of a file as Kafka values, and the rows of the file that are no events."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from ptars import HandlerPool, PtarsConfig

from gamelake.schemas.decoder import Rejects
from gamelake.schemas.framing import frame_header

_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC")
_NOTHING = pa.scalar(b"", pa.binary())


class UnreadableFileError(Exception):
    """A file that can't be read in its format; none of its events is ingested."""


@dataclass(frozen=True, slots=True)
class FileEvents:
    """Some events of a file, in order.

    `values` (binary, one per row) is the framed event; for a rejected row the content of the file, null if that must
    not be kept.
    """

    values: pa.BinaryArray
    rejects: Rejects = field(default_factory=Rejects)


class Framer:
    """Encodes columns of the contract's event as framed Protobuf, as in Kafka."""

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._handler = HandlerPool([message.file], config=_CONFIG).get_for_message(message)
        self._header = pa.scalar(frame_header(schema_id), pa.binary())

    @property
    def schema(self) -> pa.Schema:
        """The columns of the message, as `values` takes them."""
        return self._handler.schema()

    def columns(self, bodies: pa.BinaryArray) -> pa.RecordBatch:
        """Protobuf messages (binary) as columns, one row per message.

        Raises:
            ValueError: a body is no such message.
        """
        return self._handler.array_to_record_batch(bodies)

    def values(self, columns: pa.RecordBatch) -> pa.BinaryArray:
        """A Kafka value (binary) for each row of a batch with the columns of `schema`."""
        return self.framed(self._handler.record_batch_to_array(columns))

    def framed(self, bodies: pa.BinaryArray) -> pa.BinaryArray:
        """A Kafka value (binary) for each message: header and body, in order."""
        return pc.binary_join_element_wise(self._header, bodies, _NOTHING)
