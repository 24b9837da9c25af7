"""The results of a run on the stack, as they are stored."""

from pathlib import Path

import msgspec

from benchmarks.results import write_json


class LoadSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of the load: records in Kafka and in tables since its start, `seconds` after it."""

    seconds: float
    sent: int
    taken: int

    @property
    def behind(self) -> int:
        """Records in Kafka that are not in the tables."""
        return self.sent - self.taken


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """A load at a requested rate: samples, and CPU seconds of the services."""

    rate: int
    samples: tuple[LoadSample, ...]
    drained_seconds: float
    rows: int
    batches: int
    cpu_seconds: dict[str, float]

    @property
    def sent_rate(self) -> float:
        """Records per second into Kafka, from the first sample to the last."""
        first, last = self.samples[0], self.samples[-1]
        return (last.sent - first.sent) / (last.seconds - first.seconds)

    @property
    def taken_rate(self) -> float:
        """Records per second into tables, from the first sample to the last."""
        first, last = self.samples[0], self.samples[-1]
        return (last.taken - first.taken) / (last.seconds - first.seconds)

    @property
    def most_behind(self) -> int:
        """The greatest lag of all samples, in records."""
        return max(each.behind for each in self.samples)


class Visibility(msgspec.Struct, frozen=True, kw_only=True):
    """Age of events when Trino first returned them, in seconds, at a steady rate."""

    rate: int
    events: int
    questions: int
    p50: float
    p95: float
    max: float
    question_seconds_p50: float
    cpu_seconds: dict[str, float]


class StackResults(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run; `seconds` is how long each of the two loads lasted."""

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    seconds: int
    throughput: tuple[Throughput, ...] = ()
    visibility: tuple[Visibility, ...] = ()


def save(results: StackResults, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"stack-{results.measured_at[:10]}-{results.commit}", "stack-latest")
