"""Holds a game's gold tables back after a critical failure, and releases them once its suites pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from gamelake.model.logs import event_logger
from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.suites.expectations import SuiteName
from gamelake.quality.suites.validations import ExpectationResult
from gamelake.storage.holds import Hold, hold_back, holds, release
from gamelake.storage.store import Store

log = event_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldHolds:
    """Updates holds after a validation of a day."""

    store: Store
    day: date
    now: datetime
    by: str
    until: datetime | None = None

    def settle(self, game: str, outcomes: Sequence[ExpectationResult]) -> None:
        """Hold a game's gold back if a critical expectation failed; release it if none failed."""
        critical = [each.expected.name for each in outcomes if each.is_critical]
        if critical:
            self._hold(game, critical)
        elif _was_validated(outcomes) and self._is_held(game):
            release(self.store, game)
            log.info("gold_released", game=game, day=self.day, reason="no critical failure")

    def _hold(self, game: str, critical: Sequence[str]) -> None:
        why = f"{', '.join(critical)} failed for {self.day}"
        hold_back(self.store, Hold(game=game, by=self.by, since=self.now, day=self.day, why=why, until=self.until))
        log.warning("gold_held_back", game=game, day=self.day, reason=why)

    def _is_held(self, game: str) -> bool:
        """Whether the game is held for this day or an earlier one; a hold for a later day stays."""
        hold = holds(self.store, self.now).get(game)
        return hold is not None and hold.day <= self.day


def _was_validated(outcomes: Sequence[ExpectationResult]) -> bool:
    return any(each.suite.name is SuiteName.RULES and each.status is CheckStatus.PASSED for each in outcomes)
