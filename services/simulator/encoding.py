"""Columns to Kafka values: Protobuf behind a Confluent frame, without a Python object per event."""

import pyarrow as pa
import pyarrow.compute as pc
from ptars import HandlerPool, PtarsConfig

from services.simulator.columns import Scene, record_batch
from services.simulator.schemas import EventSchema

_MAGIC = b"\x00"
# The message index [0], the file's first message, is written as one byte.
_FIRST_MESSAGE = b"\x00"
_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC")


def frame_header(schema_id: int) -> bytes:
    """Give what the Confluent format puts before the body."""
    return _MAGIC + schema_id.to_bytes(4, "big") + _FIRST_MESSAGE


HEADER_BYTES = len(frame_header(0))


class Encoder:
    """Writes events as one version of the contract."""

    def __init__(self, schema: EventSchema, schema_id: int) -> None:
        self.version = schema.version
        self._handler = HandlerPool([schema.message.file], config=_CONFIG).get_for_message(schema.message)
        self._columns = self._handler.schema()
        self._header = pa.scalar(frame_header(schema_id), pa.binary())

    def encode(self, scene: Scene) -> pa.BinaryArray:
        """Give one framed value per event."""
        bodies = self._handler.record_batch_to_array(record_batch(scene, self._columns))
        return pc.binary_join_element_wise(self._header, bodies, pa.scalar(b"", pa.binary()))
