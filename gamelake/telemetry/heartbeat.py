"""A file whose age says how long ago the query was last well."""

from pathlib import Path

from gamelake.telemetry.harmless import harmless


class Heartbeat:
    """Touches a file; without one it does nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @harmless
    def beat(self) -> None:
        """The query is well now."""
        if self._file is not None:
            self._file.touch()
