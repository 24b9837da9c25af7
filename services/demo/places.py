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
    def simulator_log(self) -> Path:
        """What the simulator says; each run adds to it."""
        return self.directory / "logs" / "simulator.log"

    @property
    def ledger(self) -> Path:
        """What the simulator of the latest run has sent."""
        return self.directory / "ledger.json"

    @property
    def summary(self) -> Path:
        """The latest run in figures."""
        return self.directory / "summary.json"

    @property
    def report(self) -> Path:
        """The latest run as a page."""
        return self.directory / "report.html"
