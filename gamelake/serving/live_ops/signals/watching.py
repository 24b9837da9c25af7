"""Counts minutes on the driver, and has them judged when they are over in event time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.serving.live_ops.signals.counts import COUNTS_SCHEMA, Count, as_counts, limited, summed
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import Signal

_MINUTE = 60_000_000  # microseconds
# A Kafka partition without events for this long does not hold up the others.
_IDLE = 5 * _MINUTE
# This share of the first batch's events may be before the first minute that is judged.
_LATE_SHARE = 0.03
_ORDER = ("minute", "game", "app_version")
_CARRIED = b"gamelake.live_ops.carried"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a batch.

    Attributes:
        closed: the minutes that are over: columns of `COUNTS_SCHEMA`, sorted by minute, game and version.
        changes: the signals that began or ended with these minutes.
        late: the number of events whose minute was over before they arrived; they are not counted.
    """

    closed: pa.Table
    changes: Sequence[Signal]
    late: int


@dataclass(slots=True)
class Watching:
    """Counts minutes until they are over, and has each judged once, in order.

    The driver's thread calls `judge` and then `carried` for each batch; after a restart, `go_on_from` first. A batch
    must not be judged twice by the same instance.

    Attributes:
        detector: judges the minutes.
        patience: how far the newest event of the slowest partition must pass the end of a minute (microseconds).
    """

    detector: Detector
    patience: int
    _open: pa.Table = field(default_factory=COUNTS_SCHEMA.empty_table)
    _newest: dict[int, int] = field(default_factory=dict)
    _judged: int | None = None

    def judge(self, counts: Sequence[pa.Table], newest: Sequence[Mapping[int, int]]) -> Judgement:
        """Add a batch and judge the minutes that it closes.

        Args:
            counts: for each task, a table with the columns of `COUNTS_SCHEMA`.
            newest: for each task, the newest event time of each Kafka partition, in microseconds since 1970.
        """
        for each in newest:
            for partition, moment in each.items():
                self._newest[partition] = max(moment, self._newest.get(partition, 0))
        rows = summed([self._open, *counts])
        if self._judged is None and len(rows):
            self._judged = _first_minute(rows) - 1
        judged = -1 if self._judged is None else self._judged
        late = pc.sum(rows.filter(pc.less_equal(rows["minute"], judged))["events"]).as_py() or 0
        rows = limited(rows.filter(pc.greater(rows["minute"], judged)))
        last = self._last_over()
        closed = rows.filter(pc.less_equal(rows["minute"], last)).sort_by([(name, "ascending") for name in _ORDER])
        self._open = rows.filter(pc.greater(rows["minute"], last))
        self._judged = max(judged, last) if self._judged is not None else None
        changes = [change for minute, found in _by_minute(closed) for change in self.detector.judge(minute, found)]
        return Judgement(closed, changes, late)

    def _last_over(self) -> int:
        """Return the last minute that is over in event time, including the patience."""
        if not self._newest:
            return -1
        newest = max(self._newest.values())
        slowest = min(moment for moment in self._newest.values() if moment >= newest - _IDLE)
        return (slowest - self.patience) // _MINUTE - 1

    def carried(self) -> pa.Table:
        """Return the state that the next batch starts from: the open minutes (`COUNTS_SCHEMA`), and metadata."""
        carried = {"newest": self._newest, "judged": self._judged}
        return self._open.replace_schema_metadata({_CARRIED: json.dumps(carried).encode()})

    def go_on_from(self, carried: pa.Table) -> None:
        """Restore the state of `carried`: the same columns and metadata."""
        left = json.loads(carried.schema.metadata[_CARRIED])
        self._open = carried.replace_schema_metadata(None)
        self._newest = {int(partition): moment for partition, moment in left["newest"].items()}
        self._judged = left["judged"]


def _by_minute(rows: pa.Table) -> list[tuple[int, list[Count]]]:
    return [(minute, list(found)) for minute, found in groupby(as_counts(rows), lambda count: count.minute)]


def _first_minute(rows: pa.Table) -> int:
    ordered = rows.sort_by("minute")
    events = np.cumsum(ordered["events"].to_numpy())
    return int(ordered["minute"][int(np.searchsorted(events, _LATE_SHARE * events[-1]))].as_py())
