"""Checks a changed contract before programs restart with it: until it is right, running programs keep the last one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.dev.programs import importable
from tools.embedded.service import CONTRACTS, REPOSITORY


class ContractGate:
    """Passes changed files on, unless the contracts are wrong; then it holds them back and reports the reasons.

    Args:
        report: takes a line for the terminal.
        problems: returns what is wrong with the contracts.
    """

    def __init__(self, report: Callable[[str], None], problems: Callable[[], list[str]]) -> None:
        self._report = report
        self._problems = problems
        self._held: set[Path] = set()

    def passed(self, changed: set[Path]) -> set[Path]:
        """Return the files with which programs may restart now, with those that were held back before."""
        if not changed or not (self._held or any(file.is_relative_to(CONTRACTS) for file in changed)):
            return changed
        # Each of our programs reads the contracts at its start, whatever it starts again for.
        self._held |= changed
        if problems := self._problems():
            for problem in problems:
                self._report(problem)
            self._report("Nothing restarts until this is corrected; running programs keep the last contracts.")
            return set()
        passed, self._held = self._held, set()
        return passed


def problems_of_contracts() -> list[str]:
    """Return what is wrong with the contracts that programs read at their start, each with file and line.

    In a process of its own, because the code of the checks may have changed, too.
    """
    checked = subprocess.run(
        (sys.executable, "-m", "tools.contracts", "--contracts-only"),
        cwd=REPOSITORY,
        env={**os.environ, **importable()},
        capture_output=True,
        text=True,
        check=False,
    )
    return checked.stderr.splitlines() if checked.returncode else []
