"""Protobuf events to columns: decoded together, and written again to see that nothing else was in them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor

from services.gateway.columns.reading import Read, handler_of, says_a_key_twice


class ProtobufColumns:
    """Reads messages of one contract."""

    def __init__(self, event: Descriptor) -> None:
        self._handler = handler_of(event)

    def read(self, written: Sequence[bytes]) -> Read | None:
        """The events, or None when one of them is no message.

        An event that differs when it is written again has something that the contract lacks, or an unusual order of
        fields: both are in doubt.
        """
        bodies = pa.array(written, pa.binary())
        try:
            events = self._handler.array_to_record_batch(bodies)
        except ValueError:
            return None
        same = pc.equal(self._handler.record_batch_to_array(events), bodies)
        return Read(events, np.invert(same.to_numpy(zero_copy_only=False)) | says_a_key_twice(events))
