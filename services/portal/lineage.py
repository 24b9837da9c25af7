"""The page of the tables' lineage: drawn by `python -m tools.lineage` in a process and kept for a minute, or a file."""

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from gamelake.model.errors import GamelakeError

_KEPT_SECONDS = 60.0
_TIMEOUT_SECONDS = 60.0
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


# The place in the page of `tools.lineage` for the links to the portal's other pages.
NAVIGATION_MARK = "<!-- navigation -->"


class LineageUnavailableError(GamelakeError):
    """The lineage can't be drawn.

    Attributes:
        remedy: a command that may help; empty if none is known.
    """

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


class LineagePage:
    """The page of the lakehouse in the environment, or of a file.

    Args:
        file: a page that was drawn by `tools.lineage`; None: draw it.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._drawn_at = float("-inf")
        self._page = ""

    def get(self) -> str:
        """Return the page, at most a minute old, or that of the file.

        Raises:
            LineageUnavailableError: it can't be drawn, or was not drawn yet.
        """
        if self._file is not None:
            try:
                return self._file.read_text(encoding="utf-8")
            except OSError as error:
                raise LineageUnavailableError(
                    "The lineage is not drawn yet: make portal draws it.", "make portal"
                ) from error
        with self._lock:
            if time.monotonic() - self._drawn_at > _KEPT_SECONDS:
                self._page = _drawn()
                self._drawn_at = time.monotonic()
            return self._page


def script_hashes(page: str) -> list[str]:
    """Return the hashes of the page's own scripts, as a Content-Security-Policy names them.

    Source: CSP Level 3, https://www.w3.org/TR/CSP3/#grammardef-hash-source.
    """
    digests = (hashlib.sha256(text.encode()).digest() for text in _SCRIPT.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


def _drawn() -> str:
    with tempfile.TemporaryDirectory(prefix="gamelake-portal-") as folder:
        file = Path(folder) / "lineage.html"
        command = (sys.executable, "-m", "tools.lineage", "--output", str(file))
        try:
            outcome = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise LineageUnavailableError(f"the lineage was not drawn within {_TIMEOUT_SECONDS:.0f} s") from error
        if outcome.returncode != 0:
            raise LineageUnavailableError(f"the lineage can't be drawn: {outcome.stderr.strip()[-500:]}")
        return file.read_text(encoding="utf-8")
