"""Where a demo keeps its things."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.lake.store import Location


@dataclass(frozen=True, slots=True)
class Places:
    """The files and folders of one demo directory."""

    directory: Path

    @classmethod
    def under(cls, directory: Path) -> Self:
        """Make the directory, and name what is in it."""
        resolved = directory.resolve()
        (resolved / "logs").mkdir(parents=True, exist_ok=True)
        return cls(resolved)

    @property
    def lakehouse(self) -> Location:
        """The tables."""
        # Not as_uri(), which would write a space as %20: Spark takes such a path by the letter.
        return Location(uri=f"file://{self.directory / 'lakehouse'}")

    @property
    def job_log(self) -> Path:
        """What the ingest job says; each run adds to it."""
        return self.directory / "logs" / "ingest_events.log"

    @property
    def lineage(self) -> Path:
        """What the ingest job tells of its tables' lineage, besides the table; each run adds to it."""
        return self.directory / "lineage.jsonl"

    @property
    def games_log(self) -> Path:
        """What the games that send over HTTP say; each run adds to it."""
        return self.directory / "logs" / "games.log"

    @property
    def old_producers_log(self) -> Path:
        """What the producers that write to Kafka say; each run adds to it."""
        return self.directory / "logs" / "old_producers.log"

    @property
    def gateway(self) -> Path:
        """The ingest gateway's keys, vault and log; a directory of an earlier version has them in `front_door`."""
        earlier = self.directory / "front_door"
        return earlier if earlier.is_dir() else self.directory / "gateway"

    @property
    def vault(self) -> Path:
        """Who the players are, sealed."""
        return self.gateway / "vault.db"

    @property
    def http_ledger(self) -> Path:
        """What the gateway has acknowledged to the games of the latest run."""
        return self.directory / "ledger.http.json"

    @property
    def kafka_ledger(self) -> Path:
        """What the old producers of the latest run have sent to Kafka."""
        return self.directory / "ledger.kafka.json"

    @property
    def summary(self) -> Path:
        """The latest run in figures."""
        return self.directory / "summary.json"

    @property
    def report(self) -> Path:
        """The latest run as a page."""
        return self.directory / "report.html"
