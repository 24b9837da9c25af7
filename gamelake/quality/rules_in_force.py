"""The rules of a folder while a stream runs: looked at again between batches, and taken only if they are good."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gamelake.model.errors import ContractError
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.quality.rules import RuleSet, load_rules

log = logging.getLogger(__name__)

# What was refused for a column that no schema had may be good once a schema has it.
_TRY_AGAIN_SECONDS = 30
Check = Callable[[RuleSet], CheckedRules]


class RulesInForce(Protocol):
    """The rules by which rows are judged; `refused` says why they are not those of the files, if they are not."""

    refused: str

    def now(self) -> CheckedRules:
        """Those of the batch that begins."""


class NoRules:
    """No rules."""

    refused = ""

    def now(self) -> CheckedRules:
        """None."""
        return NO_CHECKED_RULES


class WatchedRules:
    """The rules of a folder; broken ones leave those in force that were good.

    `in_force` are those that were good last, `since` (seconds since 1970) they are, and `refused` says why what the
    files say now is not what is in force; empty if it is.

    Raises:
        ContractError: they are broken at the start.
    """

    def __init__(self, folder: Path, check: Check) -> None:
        self._folder = folder
        self._check = check
        self._state = _state_of(folder)
        self._tried = time.monotonic()
        self.in_force = check(load_rules(folder))
        self.since = time.time()
        self.refused = ""

    def now(self) -> CheckedRules:
        """Those in force, after a look at the files."""
        state = _state_of(self._folder)
        again = self.refused and time.monotonic() - self._tried >= _TRY_AGAIN_SECONDS
        if state != self._state or again:
            self._state, self._tried = state, time.monotonic()
            self._take()
        return self.in_force

    def _take(self) -> None:
        try:
            checked = self._check(load_rules(self._folder))
        except ContractError as error:
            if str(error) != self.refused:
                log.warning("the rules stay as they were: %s", error)
            self.refused = str(error)
            return
        if checked.rules.fingerprint != self.in_force.rules.fingerprint:
            self.since = time.time()
            log.info("rules %s are in force, %d of them", checked.rules.fingerprint, len(checked.rules.rules))
        self.in_force, self.refused = checked, ""


def _state_of(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """What differs once other rules stand there, even when a clock stands still or a file is moved in place."""
    try:
        found = ((path.name, path.stat()) for path in sorted(folder.glob("*.yaml")))
        return tuple((name, each.st_mtime_ns, each.st_ino, each.st_size) for name, each in found)
    except OSError:
        return ()
