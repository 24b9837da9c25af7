"""What is known of a run while it goes on: what Kafka has, what the job has taken, what memory it all takes."""

import time
from datetime import UTC, datetime, timedelta

from gamelake.lake.store import Store
from tools.demo.figures import Sample
from tools.demo.job_log import BatchLine, JobLog
from tools.demo.memory import tree_bytes
from tools.demo.screen import Status
from tools.demo.topic_end import TopicEnd

SECONDS_BETWEEN_SAMPLES = 1.0
_RATE_WINDOW_SECONDS = 8.0
_LAYERS = ("bronze/", "silver/", "dead_letters/", "quarantine/")


class RunClock:
    """Seconds since the start of a run, by the wall clock, because other processes' times are compared with it."""

    def __init__(self) -> None:
        self.started_at = datetime.now(UTC)

    def now(self) -> float:
        """Seconds until now."""
        return self.at(datetime.now(UTC))

    def at(self, moment: datetime) -> float:
        """Seconds until a moment."""
        return round((moment - self.started_at).total_seconds(), 3)


class Progress:
    """Counts from what was already taken: records of Kafka by its end offsets, taken ones by the job's log.

    Args:
        taken_before: records that earlier runs took.
        goal: records that are to be taken.
    """

    def __init__(
        self, *, clock: RunClock, job_log: JobLog, topic_end: TopicEnd, store: Store, taken_before: int, goal: int
    ) -> None:
        self.batches: list[BatchLine] = []
        self.samples: list[Sample] = []
        self._clock = clock
        self._job_log = job_log
        self._topic_end = topic_end
        self._store = store
        self._taken_before = taken_before
        self._goal = goal
        self._tables = 0
        self._moved = time.monotonic()
        self.sample()

    @property
    def lag(self) -> int:
        """Records that Kafka had at the last sample and the tables have not."""
        return self.samples[-1].produced - self._taken

    @property
    def stalled_for(self) -> timedelta:
        """How long nothing was taken."""
        return timedelta(seconds=time.monotonic() - self._moved)

    @property
    def _taken(self) -> int:
        return sum(batch.records for batch in self.batches)

    def look(self) -> None:
        """Read the log, and take a sample if the last one is old."""
        new = self._job_log.new_batches()
        if new or self.lag == 0:
            self._moved = time.monotonic()
        self.batches += new
        if self._clock.now() - self.samples[-1].seconds >= SECONDS_BETWEEN_SAMPLES:
            self.sample()

    def sample(self) -> None:
        """Note where the run is."""
        self._tables = sum(len(self._store.folders(layer)) for layer in _LAYERS)
        self.samples.append(
            Sample(
                produced=self._topic_end.records() - self._taken_before,
                taken=self._taken,
                seconds=self._clock.now(),
                memory_bytes=tree_bytes(),
            )
        )

    def status(self) -> Status:
        """What to show of it."""
        taken, now = self._taken, self._clock.now()
        window = [sample for sample in self.samples if sample.seconds >= now - _RATE_WINDOW_SECONDS]
        oldest = window[0] if window else self.samples[-1]
        return Status(
            seconds=now,
            goal=self._goal,
            produced=max(self.samples[-1].produced, taken),
            taken=taken,
            records_per_second=(taken - oldest.taken) / max(now - oldest.seconds, 1.0),
            tables=self._tables,
            dead_letters=sum(sum(batch.dead_letters.values()) for batch in self.batches),
            batches=len(self.batches),
        )
