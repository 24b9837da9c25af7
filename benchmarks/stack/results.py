"""What a run on the stack found, as the file that keeps it."""

from pathlib import Path

import msgspec

from benchmarks.results import write_json


class LoadSample(msgspec.Struct, frozen=True, kw_only=True):
    """A look at the load: records in Kafka and records in tables since its start, seconds after it."""

    seconds: float
    sent: int
    taken: int

    @property
    def behind(self) -> int:
        """Records that Kafka has and the tables lack."""
        return self.sent - self.taken


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """A load at a rate that was asked for, look by look, and what it cost."""

    rate: int
    samples: tuple[LoadSample, ...]
    drained_seconds: float
    rows: int
    batches: int
    cpu_seconds: dict[str, float]

    @property
    def sent_rate(self) -> float:
        """Records per second into Kafka, from the first look to the last."""
        first, last = self.samples[0], self.samples[-1]
        return (last.sent - first.sent) / (last.seconds - first.seconds)

    @property
    def taken_rate(self) -> float:
        """Records per second into tables, from the first look to the last."""
        first, last = self.samples[0], self.samples[-1]
        return (last.taken - first.taken) / (last.seconds - first.seconds)

    @property
    def most_behind(self) -> int:
        """The greatest number of records that were behind at any look."""
        return max(each.behind for each in self.samples)


class Visibility(msgspec.Struct, frozen=True, kw_only=True):
    """How old events were when Trino first returned them, in seconds, at a steady rate."""

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
