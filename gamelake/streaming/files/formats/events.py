"""Events of a file as Kafka would have brought them, and what of the file is no event."""

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
    """A file that can't be read as what it says it is: none of its events is taken."""


@dataclass(frozen=True, slots=True)
class FileEvents:
    """Some events of a file, in its order.

    `values` (binary) has the framed event of each row, or, of a row that is rejected, what stands in the file; null if
    that must not be kept.
    """

    values: pa.BinaryArray
    rejects: Rejects = field(default_factory=Rejects)


class Framer:
    """Writes columns of the contract's event as Kafka values."""

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._handler = HandlerPool([message.file], config=_CONFIG).get_for_message(message)
        self._header = pa.scalar(frame_header(schema_id), pa.binary())

    @property
    def schema(self) -> pa.Schema:
        """The columns that a batch must have."""
        return self._handler.schema()

    def columns(self, bodies: pa.BinaryArray) -> pa.RecordBatch:
        """Bodies of messages as columns.

        Raises:
            ValueError: one of them is no such message.
        """
        return self._handler.array_to_record_batch(bodies)

    def values(self, columns: pa.RecordBatch) -> pa.BinaryArray:
        """A value for each row of a batch that has the `schema`."""
        return self.framed(self._handler.record_batch_to_array(columns))

    def framed(self, bodies: pa.BinaryArray) -> pa.BinaryArray:
        """A value for each body."""
        return pc.binary_join_element_wise(self._header, bodies, _NOTHING)
