"""The common interface of the compared approaches: the workload, and the result of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.results import BatchTimes, Lap
from gamelake.storage.store import Location
from gamelake.streaming.settings import IngestSettings

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
    batches: tuple[BatchTimes, ...] = ()
    files: int = 0
    game_table_bytes: int = 0


Approach: TypeAlias = Callable[[Workload], ApproachResult]


class RecordsMissingError(Exception):
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
