"""The folder of a platform that runs as processes of this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.objects.store import Location


@dataclass(frozen=True, slots=True)
class PlatformFolder:
    """Its tables and the logs of its programs."""

    directory: Path

    @classmethod
    def under(cls, directory: Path) -> Self:
        """Create the directory."""
        resolved = directory.resolve()
        (resolved / "logs").mkdir(parents=True, exist_ok=True)
        return cls(resolved)

    @property
    def lakehouse(self) -> Location:
        """The lakehouse with the tables."""
        # Not as_uri(), which writes a space as %20: Spark does not decode that.
        return Location(uri=f"file://{self.directory / 'lakehouse'}")

    def log(self, name: str) -> Path:
        """Return the log of a program; each start appends to it."""
        return self.directory / "logs" / f"{name}.log"
