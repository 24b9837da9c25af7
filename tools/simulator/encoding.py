"""Columns to Kafka values: Protobuf behind a Confluent frame, without a Python object per event."""

import pyarrow as pa
import pyarrow.compute as pc
from ptars import HandlerPool, PtarsConfig

from gamelake.wire.event_schemas import EventSchema
from gamelake.wire.framing import frame_header
from tools.simulator.columns import Scene, record_batch

_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC")


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
