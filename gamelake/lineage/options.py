"""What a person may ask of the lineage."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOptions:
    """How often a job that runs on tells of itself again, zero for never; and a file for the events besides."""

    every: timedelta = timedelta(hours=1)
    file: Path | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether anything is told at all."""
        return self.every > timedelta()
