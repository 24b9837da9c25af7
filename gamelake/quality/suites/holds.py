"""Holds a game's gold back after a critical failure, and lets it go on once its suites pass."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.suites.expectations import SuiteName
from gamelake.quality.suites.validations import ExpectationResult
from gamelake.storage.holds import Hold, hold_back, holds, release
from gamelake.storage.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldHolds:
    """What becomes of holds after a run of suites for a day."""

    store: Store
    day: date
    now: datetime
    by: str
    until: datetime | None = None

    def settle(self, game: str, outcomes: Sequence[ExpectationResult]) -> None:
        """Hold a game's gold back if one of its expectations that weigh so much failed, release it if all passed."""
        critical = [each.expected.name for each in outcomes if each.is_critical]
        if critical:
            self._hold(game, critical)
        elif _was_judged(outcomes) and self._is_held(game):
            release(self.store, game)
            log.info("%s passes for %s: its gold goes on", game, self.day)

    def _hold(self, game: str, critical: Sequence[str]) -> None:
        why = f"{', '.join(critical)} failed for {self.day}"
        hold_back(self.store, Hold(game=game, by=self.by, since=self.now, day=self.day, why=why, until=self.until))
        log.warning("%s: its gold is held back, as %s", game, why)

    def _is_held(self, game: str) -> bool:
        """By a failure of this day or of one before; one of a day that came later stands."""
        hold = holds(self.store, self.now).get(game)
        return hold is not None and hold.day <= self.day


def _was_judged(outcomes: Sequence[ExpectationResult]) -> bool:
    return any(each.suite.name is SuiteName.RULES and each.status is CheckStatus.PASSED for each in outcomes)
