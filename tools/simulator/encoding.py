"""Events to bytes, without a Python object per event: Kafka records, and the messages that games submit.

A Kafka record is Protobuf behind a Confluent frame. A submitted message is the event in the SDK's version of the
contract, followed by the personal fields.
Source: https://protobuf.dev/programming-guides/encoding/#last-one-wins (two encodings in a row are one merged message).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from ptars import HandlerPool, PtarsConfig

from gamelake.model.errors import ContractError
from gamelake.schemas.event_schemas import EventSchema, load_schema
from gamelake.schemas.framing import frame_header
from tools.simulator.columns import EventContext, record_batch
from tools.simulator.event_arrays import EventKind
from tools.simulator.players import personal_column

_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC")
_PERSONAL = "personal"
_NOTHING = pa.scalar(b"", pa.binary())


class KafkaRecordEncoder:
    """Encodes events as Kafka record values of one schema version."""

    def __init__(self, schema: EventSchema, schema_id: int) -> None:
        self.version = schema.version
        self._handler = HandlerPool([schema.message.file], config=_CONFIG).get_for_message(schema.message)
        self._columns = self._handler.schema()
        self._header = pa.scalar(frame_header(schema_id), pa.binary())

    def columns(self, context: EventContext) -> pa.RecordBatch:
        """Return the columns to encode, one row per event, in the order of the context."""
        return record_batch(context, self._columns)

    def encode(self, context: EventContext) -> pa.BinaryArray:
        """Encode one framed value per event, in the order of the context."""
        bodies = self._handler.record_batch_to_array(self.columns(context))
        return pc.binary_join_element_wise(self._header, bodies, pa.scalar(b"", pa.binary()))


def load_submitted(contracts: Path) -> EventSchema:
    """Load the newest version of the submitted event, which has the personal fields.

    Raises:
        ContractError: the schema is missing, does not compile, or has no personal fields.
    """
    version = max((int(folder.name[1:]) for folder in (contracts / "submitted").glob("v*")), default=1)
    schema = load_schema(contracts / "submitted" / f"v{version}", version)
    if _PERSONAL not in schema.message.fields_by_name:
        raise ContractError(f"{schema.message.full_name} has no field {_PERSONAL}")
    return schema


class SubmittedEncoder:
    """Encodes events as an SDK of one schema version submits them; fields of newer versions stay empty.

    Args:
        schema: the version that the SDK knows.
        submitted: the schema with the personal fields.
    """

    def __init__(self, schema: EventSchema, submitted: EventSchema) -> None:
        self.version = schema.version
        self._event = HandlerPool([schema.message.file], config=_CONFIG).get_for_message(schema.message)
        self._columns = self._event.schema()
        self._whole = HandlerPool([submitted.message.file], config=_CONFIG).get_for_message(submitted.message)
        self._blank = self._whole.schema()

    def encode(self, context: EventContext) -> pa.BinaryArray:
        """Encode one message per event; the first one of each session has the personal fields of its player."""
        # The platform sets ingest_time, a game does not.
        events = self._event.record_batch_to_array(record_batch(replace(context, ingest_time_us=None), self._columns))
        starts = np.flatnonzero(context.events.kind == EventKind.SESSION_START)
        if not len(starts):
            return events
        numbers = np.full(len(context.events), len(starts))
        numbers[starts] = np.arange(len(starts))
        personal = pa.concat_arrays([self._personal(context, starts), pa.array([b""], pa.binary())])
        return pc.binary_join_element_wise(events, personal.take(pa.array(numbers)), _NOTHING)

    def _personal(self, context: EventContext, rows: npt.NDArray[np.int64]) -> pa.BinaryArray:
        """Messages with the personal fields alone."""
        people = context.events.player[rows]
        arrays = [
            _personal_struct(context, people, field) if field.name == _PERSONAL else _blanks(field, len(rows))
            for field in self._blank
        ]
        return self._whole.record_batch_to_array(pa.RecordBatch.from_arrays(arrays, schema=self._blank))


def _personal_struct(
    context: EventContext, people: np.ndarray[tuple[int], np.dtype[np.int64]], field: pa.Field
) -> pa.StructArray:
    try:
        columns = [personal_column(each.name, context.population, people) for each in field.type]
    except KeyError as error:
        raise ContractError(f"the simulator does not know the field {_PERSONAL}.{error.args[0]}") from error
    return pa.StructArray.from_arrays(columns, fields=list(field.type))


def _blanks(field: pa.Field, count: int) -> pa.Array:
    """Return a column of values that Protobuf does not encode: null for an optional field, or the default."""
    kind = field.type
    if field.nullable:
        return pa.nulls(count, kind)
    blank: object = "" if pa.types.is_string(kind) else [] if pa.types.is_nested(kind) else 0
    return pa.array([blank], kind).take(pa.array(np.zeros(count, dtype=np.int64)))
