"""The current rules of a folder: reloaded between batches if files have changed, and used if they are valid."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gamelake.model.logs import event_logger
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.quality.rules import RuleSet, load_rules

log = event_logger(__name__)

# Rules that were rejected for an unknown column become valid once a schema has the column.
_RETRY_SECONDS = 30
Check = Callable[[RuleSet], CheckedRules]


class RulesInForce(Protocol):
    """The rules that are used; `refused` is why the current files are rejected, empty if they are not."""

    refused: str

    def now(self) -> CheckedRules:
        """Return the rules for the next batch."""


class NoRules:
    """No rules."""

    refused = ""

    def now(self) -> CheckedRules:
        """Return an empty set of rules."""
        return NO_CHECKED_RULES


class WatchedRules:
    """The rules of a folder; if its files become invalid, the last valid rules stay in use.

    Attributes:
        in_force: the last valid rules.
        since: when they were loaded, in seconds since 1970.
        refused: why the current files are rejected; empty if they are in use.

    Raises:
        ContractError: the rules are invalid at the start.
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
        """Reload the files if they have changed, and give the last valid rules."""
        state = _state_of(self._folder)
        again = self.refused and time.monotonic() - self._tried >= _RETRY_SECONDS
        if state != self._state or again:
            self._state, self._tried = state, time.monotonic()
            self._take()
        return self.in_force

    def _take(self) -> None:
        try:
            checked = self._check(load_rules(self._folder))
        except Exception as error:  # whatever it is, the rules of before are good
            if str(error) != self.refused:
                log.warning("rules_rejected", error=error, action="the previous ones stay in use; correct the file")
            self.refused = str(error)
            return
        if checked.rules.fingerprint != self.in_force.rules.fingerprint:
            self.since = time.time()
            log.info("rules_loaded", rules=len(checked.rules.rules), fingerprint=checked.rules.fingerprint)
        self.in_force, self.refused = checked, ""


def _state_of(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """A value that changes with the files: also if a file is moved in place or the clock does not advance."""
    try:
        found = ((path.name, path.stat()) for path in sorted(folder.glob("*.yaml")))
        return tuple((name, each.st_mtime_ns, each.st_ino, each.st_size) for name, each in found)
    except OSError:
        return ()
