"""The file of alerts: whole lines, on the disk before anybody is told so."""

import os
import threading
from collections.abc import Iterable
from pathlib import Path


class Journal:
    """A file that lines are appended to, by any number of threads of this one process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)

    def append(self, lines: Iterable[str]) -> None:
        """Add the lines; when it returns they outlive a power cut, and when it raises none of them is there.

        Raises:
            OSError: the disk is full or broken.
        """
        text = "".join(f"{line}\n" for line in lines).encode("utf-8")
        with self._lock, self._file.open("ab") as journal:
            size = journal.tell()
            try:
                journal.write(self._line_break(size) + text)
                journal.flush()
                os.fsync(journal.fileno())
            except OSError:
                journal.truncate(size)
                raise

    def _line_break(self, size: int) -> bytes:
        """What ends the half line that a killed process may have left."""
        if not size:
            return b""
        with self._file.open("rb") as journal:
            journal.seek(size - 1)
            return b"" if journal.read(1) == b"\n" else b"\n"
