"""Chromium, and the Python of `make browser` that drives it."""

import shutil

from gamelake.model.errors import StartupError
from tools.embedded.service import REPOSITORY

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PYTHON = REPOSITORY / "build/browser/bin/python"


def python_and_chromium() -> tuple[str, str]:
    """Return the paths of both.

    Raises:
        StartupError: one is missing.
    """
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    if chromium is None or not _PYTHON.exists():
        raise StartupError("Chromium or build/browser is missing: install the package chromium and run `make browser`")
    return str(_PYTHON), chromium
