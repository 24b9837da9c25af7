"""The results of a run, as they are stored in a JSON file."""

from pathlib import Path

import msgspec

MILLION = MEGABYTE = 1_000_000


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that figures were measured on."""

    cores: int
    memory_bytes: int
    cpu_model: str
    system: str
    versions: dict[str, str]


class Lap(msgspec.Struct, frozen=True, kw_only=True):
    """Wall time, and CPU time (user and system) of the approach's process tree, of Kafka, and of all other processes.

    CPU times are None on systems other than Linux.
    """

    seconds: float
    cpu_seconds: float | None
    kafka_cpu_seconds: float | None
    other_cpu_seconds: float | None


class BatchTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the two parts of a micro-batch, and what it wrote."""

    records: int
    tables: int
    files: int
    decide_seconds: float
    commit_seconds: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an approach.

    Attributes:
        way: its name.
        records: that it moved.
        value_bytes: of the values of these records; 0 in results from before it was measured.
    """

    way: str
    round: int
    records: int
    lap: Lap
    trigger_seconds: float = 0
    batches: tuple[BatchTimes, ...] = ()
    files: int = 0
    game_table_bytes: int = 0
    value_bytes: int = 0

    @property
    def rate(self) -> float:
        """Records per second, from the query's start to its end."""
        return self.records / self.lap.seconds

    @property
    def trigger_rate(self) -> float:
        """Records per second of the micro-batches alone, as Spark measures them: without start and end of the query."""
        return self.records / (self.trigger_seconds or self.lap.seconds)

    @property
    def megabytes_per_second(self) -> float | None:
        """Record values per second, in units of 1,000,000 bytes; None in results from before it was measured."""
        return self.value_bytes / MEGABYTE / self.lap.seconds if self.value_bytes else None

    @property
    def megabytes_per_cpu_second(self) -> float | None:
        """Record values per CPU second of the process tree, so per core; None if either was not measured."""
        return self.value_bytes / MEGABYTE / self.lap.cpu_seconds if self.value_bytes and self.lap.cpu_seconds else None

    @property
    def cpu_seconds_per_million(self) -> float | None:
        """CPU seconds of the process tree for a million records; None if they were not measured."""
        return None if self.lap.cpu_seconds is None else self.lap.cpu_seconds * MILLION / self.records


class CommitTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for one commit to each of `tables` tables, one value per repetition."""

    round: int
    tables: int
    seconds: tuple[float, ...]


class FreshnessMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """Age of events at the last commit of their batch, in seconds, in a run at a steady rate."""

    round: int
    events: int
    rate: int
    p50: float
    p95: float
    max: float
    lap: Lap
    batches: tuple[BatchTimes, ...]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A run with all its measurements."""

    measured_at: str
    commit: str
    events: int
    wire_bytes_per_event: float
    machine: MachineInfo
    measurements: tuple[Measurement, ...] = ()
    commits: tuple[CommitTimes, ...] = ()
    freshness: tuple[FreshnessMeasurement, ...] = ()

    def of(self, way: str) -> tuple[Measurement, ...]:
        """The measurements of an approach, by round."""
        return tuple(each for each in self.measurements if each.way == way)


def save(results: Results, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"{results.measured_at[:10]}-{results.commit}", "latest")


def save_part(results: Results, folder: Path) -> Path:
    """Write the results of some benchmarks under their date and commit; `latest` stays that of a whole run."""
    return write_json(results, folder, f"part-{results.measured_at[:10]}-{results.commit}")


def write_json(content: msgspec.Struct, folder: Path, *names: str) -> Path:
    """Write the same content under each of the names; returns the first file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
    paths = [folder / f"{name}.json" for name in names]
    for path in paths:
        path.write_bytes(text)
    return paths[0]


def load(path: Path) -> Results:
    """Read results."""
    return msgspec.json.decode(path.read_bytes(), type=Results)
