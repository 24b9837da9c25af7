"""Measures the delay until Trino returns an event: players at a steady rate, and a repeated query."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import trino

from benchmarks.results import Measurement, percentiles
from benchmarks.stack.probes import start_simulator
from benchmarks.stack.throughput import LoadFailedError
from gamelake.model.arrays import Floats, Ints
from tools import stack

# A game's own table, which is committed after silver/events.
_GAME = "archery_duel_events"
# A time in milliseconds, as in the columns: with a finer one Trino cannot skip files.
_SINCE = f"FROM silver.{_GAME} WHERE ingest_time > from_unixtime(?)"
_NEWEST = f"SELECT kafka_partition, max(kafka_offset) {_SINCE} GROUP BY 1"
_ARRIVALS = f"SELECT kafka_partition, kafka_offset, to_unixtime(ingest_time) {_SINCE}"
_SECONDS_BETWEEN_QUESTIONS = 0.2
# Offsets only grow: the newest visible one is enough, so the query can be limited to the last seconds.
_WINDOW_SECONDS = 30
AGE = "age in Trino"
_WARM_UP_SECONDS = 20
_DRAIN_SECONDS = 20


@dataclass(slots=True)
class VisibleOffsets:
    """For each partition, the times of query results and the newest offset in each."""

    times: dict[int, list[float]] = field(default_factory=dict)
    newest: dict[int, list[int]] = field(default_factory=dict)
    question_seconds: list[float] = field(default_factory=list)

    def ages(self, partition: int, offsets: Ints, arrived: Floats) -> Floats:
        """Seconds from each record's arrival to the end of the first query that returned it.

        Raises:
            LoadFailedError: no query returned one of them.
        """
        first = np.searchsorted(np.maximum.accumulate(self.newest.get(partition, [])), offsets)
        times = np.asarray(self.times.get(partition, []))
        if len(first) and first.max() >= len(times):
            raise LoadFailedError(f"Trino never returned a record of partition {partition}")
        return np.asarray(times[first] - arrived, dtype=np.float64)


def measure(rate: int, seconds: int) -> Measurement:
    """Query while events arrive, then compute the delay of each event.

    Raises:
        LoadFailedError: an event never became visible, or the simulator failed.
    """
    cursor = _analyst()
    simulator = start_simulator(rate, rate * (seconds + _WARM_UP_SECONDS))
    started, visible = time.time(), VisibleOffsets()
    while simulator.poll() is None:
        _query(cursor, visible)
    if simulator.returncode != 0:
        raise LoadFailedError("the simulator failed: build/benchmarks/simulator.log says why")
    ended = time.monotonic()
    while time.monotonic() < ended + _DRAIN_SECONDS:
        _query(cursor, visible)
    ages = _ages(cursor, started + _WARM_UP_SECONDS, visible)
    values = percentiles(ages) | {
        "events": len(ages),
        "queries": len(visible.question_seconds),
        "s of a query": round(median(visible.question_seconds), 2),
    }
    return Measurement(part=AGE, subject=f"{rate:,} events/s", values=values)


def _analyst() -> trino.dbapi.Cursor:
    return stack.trino("analyst").connect("gamelake-benchmarks").cursor()  # type: ignore[no-any-return] # untyped


def _query(cursor: trino.dbapi.Cursor, visible: VisibleOffsets) -> None:
    asked, since = time.monotonic(), time.time() - _WINDOW_SECONDS
    rows = [(int(partition), int(newest)) for partition, newest in _rows(cursor, _NEWEST, since)]
    received = time.time()
    visible.question_seconds.append(time.monotonic() - asked)
    for partition, newest in rows:
        visible.times.setdefault(partition, []).append(received)
        visible.newest.setdefault(partition, []).append(newest)
    time.sleep(_SECONDS_BETWEEN_QUESTIONS)


def _ages(cursor: trino.dbapi.Cursor, since: float, visible: VisibleOffsets) -> Floats:
    arrivals = np.array(_rows(cursor, _ARRIVALS, since), dtype=np.float64).reshape(-1, 3)
    if not len(arrivals):
        raise LoadFailedError("no event became visible in Trino")
    ages = []
    for partition in np.unique(arrivals[:, 0]):
        mine = arrivals[arrivals[:, 0] == partition]
        ages.append(visible.ages(int(partition), mine[:, 1].astype(np.int64), mine[:, 2]))
    return np.concatenate(ages)


def _rows(cursor: trino.dbapi.Cursor, question: str, since: float) -> list[Sequence[float]]:
    cursor.execute(question, (since,))  # type: ignore[no-untyped-call]
    return list(cursor.fetchall())
