"""What reading events as columns gives, and what it is read with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from ptars import HandlerPool, PtarsConfig

from gamelake.wire.framing import Flags, Ints

# Nanoseconds, so that a time is what it was when it is written again.
_CONFIG = PtarsConfig(timestamp_unit="ns", timestamp_tz="UTC")


@dataclass(frozen=True, slots=True)
class Read:
    """Events as columns of the submitted contract; those in doubt have to be looked at one by one."""

    events: pa.RecordBatch
    in_doubt: Flags


def handler_of(message: Descriptor) -> Any:  # noqa: ANN401 # ptars has no types
    """What turns messages into columns and back."""
    return HandlerPool([message.file], config=_CONFIG).get_for_message(message)


def says_a_key_twice(events: pa.RecordBatch) -> Flags:
    """Which events have a map in which a key stands twice: as columns both stay, in a message the last."""
    found = np.zeros(events.num_rows, bool)
    for column in events.columns:
        if pa.types.is_map(column.type):
            rows = np.flatnonzero(_lengths(column) > 1)
            for row, entries in zip(rows, column.take(pa.array(rows)).to_pylist(), strict=True):
                found[row] = len(dict(entries)) < len(entries)
    return found


def _lengths(column: pa.MapArray) -> Ints:
    # pyarrow's own functions for lists end the process when they are given a map.
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return np.diff(offsets).astype(np.int64)
