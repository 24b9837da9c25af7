"""Columns to Kafka values: Protobuf behind a Confluent frame, without a Python object per event."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ptars import HandlerPool, PtarsConfig

from gamelake.model.errors import ContractError
from gamelake.schemas.event_schemas import EventSchema, load_schema
from gamelake.schemas.framing import frame_header
from tools.simulator.columns import Scene, record_batch
from tools.simulator.event_arrays import Happening
from tools.simulator.players import personal_column

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


_PERSONAL = "personal"
_NOTHING = pa.scalar(b"", pa.binary())


def load_submitted(contracts: Path) -> EventSchema:
    """The newest version of the event with its personal fields, as games may send it.

    Raises:
        ContractError: it is not there, does not compile, or has no place for what is personal.
    """
    version = max((int(folder.name[1:]) for folder in (contracts / "submitted").glob("v*")), default=1)
    schema = load_schema(contracts / "submitted" / f"v{version}", version)
    if _PERSONAL not in schema.message.fields_by_name:
        raise ContractError(f"{schema.message.full_name} has no field {_PERSONAL}")
    return schema


class SubmittedEncoder:
    """Writes events as an SDK that knows one version of the contract; an older one leaves what is newer empty.

    Args:
        schema: the version that the SDK knows.
        submitted: where the personal fields are.
    """

    def __init__(self, schema: EventSchema, submitted: EventSchema) -> None:
        self.version = schema.version
        self._event = HandlerPool([schema.message.file], config=_CONFIG).get_for_message(schema.message)
        self._columns = self._event.schema()
        self._whole = HandlerPool([submitted.message.file], config=_CONFIG).get_for_message(submitted.message)
        self._blank = self._whole.schema()

    def encode(self, scene: Scene) -> pa.BinaryArray:
        """Give one message per event; a session's first one says who plays."""
        # The platform says when it took an event in; a game does not.
        events = self._event.record_batch_to_array(record_batch(replace(scene, ingest_time_us=None), self._columns))
        starts = np.flatnonzero(scene.moments.happening == Happening.SESSION_START)
        if not len(starts):
            return events
        numbers = np.full(len(scene.moments), len(starts))
        numbers[starts] = np.arange(len(starts))
        told = pa.concat_arrays([self._personal(scene, starts), pa.array([b""], pa.binary())])
        return pc.binary_join_element_wise(events, told.take(pa.array(numbers)), _NOTHING)

    def _personal(self, scene: Scene, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.BinaryArray:
        """Messages that hold nothing but what is personal."""
        people = scene.moments.player[rows]
        arrays = [
            _who(scene, people, field) if field.name == _PERSONAL else _blanks(field.type, len(rows))
            for field in self._blank
        ]
        return self._whole.record_batch_to_array(pa.RecordBatch.from_arrays(arrays, schema=self._blank))


def _who(scene: Scene, people: np.ndarray[tuple[int], np.dtype[np.int64]], field: pa.Field) -> pa.StructArray:
    try:
        columns = [personal_column(each.name, scene.population, people) for each in field.type]
    except KeyError as error:
        raise ContractError(f"the simulator does not know the field {_PERSONAL}.{error.args[0]}") from error
    return pa.StructArray.from_arrays(columns, fields=list(field.type))


def _blanks(kind: pa.DataType, count: int) -> pa.Array:
    """A column of the values that Protobuf does not write."""
    if pa.types.is_struct(kind) or pa.types.is_timestamp(kind):
        return pa.nulls(count, kind)
    blank: object = "" if pa.types.is_string(kind) else [] if pa.types.is_nested(kind) else 0
    return pa.array([blank], kind).take(pa.array(np.zeros(count, dtype=np.int64)))
