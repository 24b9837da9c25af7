"""Limits the number of partitions that a task writes to in a table partitioned by a text; each partition is a file.

Senders choose such texts, for example `event_name`. Without a limit they could cause one file per record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.arrays import Flags, Ints

# The longest name that the gateway accepts by default (`lengths` in contracts/games.yaml).
LONGEST_VALUE = 256
MOST_PARTITIONS = 256

_Partition = tuple[object, ...]


@dataclass
class PartitionLimit:
    """The partitions of each table that one task writes to; in each call those with the most events are chosen first.

    Attributes:
        most: the largest number of partitions of a table.
    """

    most: int = MOST_PARTITIONS
    _known: dict[str, set[_Partition]] = field(default_factory=dict)

    def excess(self, table: str, days: Ints, columns: Sequence[pa.Array]) -> Flags:
        """Flag the events of a table whose partition exceeds the limit, or has a value that is too long.

        Args:
            table: the name of the table.
            days: the number of days since 1970 (int64), one per event.
            columns: the texts that the table is partitioned by, one array for each column, one element per event.

        Returns:
            True for each event that must not be written (bool, one per event).
        """
        too_long = np.zeros(len(days), np.bool_)
        for texts in columns:
            too_long |= pc.fill_null(pc.binary_length(texts), 0).to_numpy() > LONGEST_VALUE
        kept = np.flatnonzero(~too_long)
        found = too_long.copy()
        found[kept] = self._too_many(table, days[kept], [texts.take(pa.array(kept)) for texts in columns])
        return found

    def _too_many(self, table: str, days: Ints, columns: Sequence[pa.Array]) -> Flags:
        known = self._known.setdefault(table, set())
        _, first, number, count = np.unique(
            _codes(days, columns), return_index=True, return_inverse=True, return_counts=True
        )
        is_excess = np.zeros(len(first), np.bool_)
        for place in np.argsort(-count, kind="stable"):
            row = int(first[place])
            partition = (int(days[row]), *(texts[row].as_py() for texts in columns))
            if partition not in known and len(known) >= self.most:
                is_excess[place] = True
            else:
                known.add(partition)
        return np.asarray(is_excess[number])


def _codes(days: Ints, columns: Sequence[pa.Array]) -> Ints:
    """Return a number for each event (int64) that only events of the same partition share."""
    codes = np.unique(days, return_inverse=True)[1].astype(np.int64)
    for texts in columns:
        encoded = texts.dictionary_encode()
        places = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy() + 1
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + places, return_inverse=True)[1]
    return codes
