"""The common interface of the compared approaches: the workload, and the result of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.results import MILLION, BenchmarkError, Values
from benchmarks.stopwatch import Lap
from gamelake.objects.store import Location
from gamelake.streaming.driver.observers import BatchSummary
from gamelake.streaming.driver.settings import IngestSettings

# All games in one table, which a single append can write.
ONE_TABLE = "silver/all_games_events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The topic to read, and the services for it.

    Attributes:
        records: in the topic.
        value_bytes: of the values of these records.
        directory: for the run's output.
    """

    bootstrap_servers: str
    registry_url: str
    kafka_pid: int
    topic: str
    records: int
    spark_jars: Path
    directory: Path
    value_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproachResult:
    """The result of a run of an approach, which has checked that no record is missing."""

    records: int
    lap: Lap
    trigger_seconds: float = 0
    batches: tuple[BatchSummary, ...] = ()
    files: int = 0
    game_table_bytes: int = 0

    def values(self, value_bytes: float) -> Values:
        """Return the figures of the run; those that were not measured are left out.

        Args:
            value_bytes: size of the values of all its records.
        """
        lap, millions, megabytes = self.lap, self.records / MILLION, value_bytes / MILLION
        figures: dict[str, float | None] = {
            "records/s": self.records / lap.seconds,
            "records/s of batches": self.records / (self.trigger_seconds or lap.seconds),
            "MB/s": megabytes / lap.seconds,
            "MB per CPU s": lap.cpu_seconds and megabytes / lap.cpu_seconds,
            "CPU s per million": lap.cpu_seconds and lap.cpu_seconds / millions,
            "Kafka's CPU s per million": lap.kafka_cpu_seconds and lap.kafka_cpu_seconds / millions,
            "records": self.records,
            "files": self.files or None,
            "bytes per event in game tables": self.game_table_bytes / self.records or None,
            "decide s": sum(each.decide_seconds for each in self.batches) or None,
            "commit s": sum(each.commit_seconds for each in self.batches) or None,
            "s": lap.seconds,
            "other CPU s": lap.other_cpu_seconds,
        }
        return {name: round(value, 4) for name, value in figures.items() if value is not None}


Approach: TypeAlias = Callable[[Workload], ApproachResult]


class RecordsMissingError(BenchmarkError):
    """An approach ended without all records: its time is invalid."""


def check_records(way: str, moved: int, expected: int) -> None:
    """Check that an approach has moved all records.

    Raises:
        RecordsMissingError: the numbers differ.
    """
    if moved != expected:
        raise RecordsMissingError(f"{way} moved {moved} records of {expected}")


def location_of(workload: Workload) -> Location:
    """The lakehouse of a run."""
    return Location(uri=(workload.directory / "lakehouse").resolve().as_uri())


def job_variables(workload: Workload, games_file: Path) -> dict[str, str]:
    """Environment variables of the ingest job; all other settings have their defaults."""
    return {
        "GAMELAKE_LAKEHOUSE": location_of(workload).uri,
        "GAMELAKE_BOOTSTRAP_SERVERS": workload.bootstrap_servers,
        "GAMELAKE_TOPIC": workload.topic,
        # Benchmarks read the batches from the log.
        "GAMELAKE_LOG_FORMAT": "json",
        "GAMELAKE_REGISTRY_URL": workload.registry_url,
        "GAMELAKE_GAMES_FILE": str(games_file),
        "GAMELAKE_SPARK_JARS": str(workload.spark_jars),
    }


def job_settings(workload: Workload, games_file: Path) -> IngestSettings:
    """The settings of the ingest job."""
    return IngestSettings.from_env(job_variables(workload, games_file))
