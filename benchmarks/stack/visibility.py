"""How soon Trino returns an event: players at a steady rate, and the same question asked again and again."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import numpy.typing as npt
import trino

from benchmarks.stack.probes import cpu_seconds, start_simulator
from benchmarks.stack.results import Visibility
from benchmarks.stack.throughput import LoadFailedError
from tools.stack import ports

# A game's own table, which is committed after silver/events: whoever reads it has waited for both.
_GAME = "archery_duel_events"
# A time as the columns have it, to the millisecond: with a finer one Trino compares row by row and reads every file.
_SINCE = f"FROM silver.{_GAME} WHERE ingest_time > from_unixtime(?)"
_NEWEST = f"SELECT kafka_partition, max(kafka_offset) {_SINCE} GROUP BY 1"
_ARRIVALS = f"SELECT kafka_partition, kafka_offset, to_unixtime(ingest_time) {_SINCE}"
_SECONDS_BETWEEN_QUESTIONS = 0.2
# Offsets only grow: the newest that was seen says what has been visible, so a question need not look further back.
_WINDOW_SECONDS = 30
_WARM_UP_SECONDS = 20
_DRAIN_SECONDS = 20

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class VisibleOffsets:
    """When which offsets had been returned: for each partition the times of answers, and the newest offset in them."""

    times: dict[int, list[float]] = field(default_factory=dict)
    newest: dict[int, list[int]] = field(default_factory=dict)
    question_seconds: list[float] = field(default_factory=list)

    def ages(self, partition: int, offsets: npt.NDArray[np.int64], arrived: Floats) -> Floats:
        """Seconds from each record's arrival to the end of the first question whose answer had it.

        Raises:
            LoadFailedError: no answer had one of them.
        """
        first = np.searchsorted(np.maximum.accumulate(self.newest.get(partition, [])), offsets)
        times = np.asarray(self.times.get(partition, []))
        if len(first) and first.max() >= len(times):
            raise LoadFailedError(f"Trino never returned a record of partition {partition}")
        return np.asarray(times[first] - arrived, dtype=np.float64)


def measure(rate: int, seconds: int) -> Visibility:
    """Ask while events come in, then look up when each of them had come.

    Raises:
        LoadFailedError: an event never became visible, or the simulator failed.
    """
    cursor = _analyst()
    simulator = start_simulator(rate, rate * (seconds + _WARM_UP_SECONDS))
    started, cpu, answers = time.time(), cpu_seconds(), VisibleOffsets()
    while simulator.poll() is None:
        _ask(cursor, answers)
    if simulator.returncode != 0:
        raise LoadFailedError("the simulator failed: build/benchmarks/simulator.log says why")
    ended = time.monotonic()
    while time.monotonic() < ended + _DRAIN_SECONDS:
        _ask(cursor, answers)
    used = {name: round(after - cpu.get(name, 0), 1) for name, after in cpu_seconds().items()}
    ages = _ages(cursor, started + _WARM_UP_SECONDS, answers)
    p50, p95, greatest = np.percentile(ages, [50, 95, 100])
    return Visibility(
        rate=rate,
        events=len(ages),
        questions=len(answers.question_seconds),
        p50=round(float(p50), 2),
        p95=round(float(p95), 2),
        max=round(float(greatest), 2),
        question_seconds_p50=round(median(answers.question_seconds), 2),
        cpu_seconds=used,
    )


def _analyst() -> trino.dbapi.Cursor:
    connect = trino.dbapi.connect
    return connect(host="127.0.0.1", port=ports()["TRINO_PORT"], user="analyst", catalog="delta").cursor()  # type: ignore[no-untyped-call, no-any-return]


def _ask(cursor: trino.dbapi.Cursor, answers: VisibleOffsets) -> None:
    asked, since = time.monotonic(), time.time() - _WINDOW_SECONDS
    rows = [(int(partition), int(newest)) for partition, newest in _rows(cursor, _NEWEST, since)]
    answered = time.time()
    answers.question_seconds.append(time.monotonic() - asked)
    for partition, newest in rows:
        answers.times.setdefault(partition, []).append(answered)
        answers.newest.setdefault(partition, []).append(newest)
    time.sleep(_SECONDS_BETWEEN_QUESTIONS)


def _ages(cursor: trino.dbapi.Cursor, since: float, answers: VisibleOffsets) -> Floats:
    arrivals = np.array(_rows(cursor, _ARRIVALS, since), dtype=np.float64).reshape(-1, 3)
    if not len(arrivals):
        raise LoadFailedError("no event became visible in Trino")
    ages = []
    for partition in np.unique(arrivals[:, 0]):
        mine = arrivals[arrivals[:, 0] == partition]
        ages.append(answers.ages(int(partition), mine[:, 1].astype(np.int64), mine[:, 2]))
    return np.concatenate(ages)


def _rows(cursor: trino.dbapi.Cursor, question: str, since: float) -> list[Sequence[float]]:
    cursor.execute(question, (since,))  # type: ignore[no-untyped-call]
    return list(cursor.fetchall())
