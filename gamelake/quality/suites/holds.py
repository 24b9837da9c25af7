"""Holds the gold of a table back after a critical failure of a day, and releases it once that day's checks pass."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from gamelake.ledger.holds import Hold, hold_back, hold_of, release
from gamelake.model.logs import event_logger
from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.suites.expectations import SuiteName
from gamelake.quality.suites.validations import ExpectationResult

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
        """Hold a game's gold for the day if a critical expectation about silver failed; else release that day.

        A day is released by the checks that failed: others that pass say nothing about them. Another day's hold stays.
        """
        failed = tuple(each.expected.name for each in outcomes if each.holds_gold)
        table = game_table(game)
        if failed:
            self._hold(game, failed)
        elif (hold := hold_of(self.store, table, self.day, self.now)) and _passed(hold.checks, outcomes):
            release(self.store, table, self.day)
            log.info("gold_released", game=game, day=self.day, reason="the checks that failed pass")

    def _hold(self, game: str, failed: tuple[str, ...]) -> None:
        why = f"{', '.join(failed)} failed for {self.day}"
        hold_back(
            self.store,
            Hold(
                table=game_table(game),
                day=self.day,
                by=self.by,
                since=self.now,
                checks=failed,
                why=why,
                until=self.until,
            ),
        )
        log.warning("gold_held_back", game=game, day=self.day, reason=why)


def _passed(checks: Collection[str], outcomes: Sequence[ExpectationResult]) -> bool:
    """Return True if each of the checks was made again.

    A check of a rule that no longer exists needs a run of the rules.
    """
    made = {each.expected.name for each in outcomes if each.status is not CheckStatus.SKIPPED}
    gone = set(checks) - {each.expected.name for each in outcomes}
    with_rules = any(each.suite.name is SuiteName.RULES and each.expected.name in made for each in outcomes)
    return (bool(checks) or with_rules) and all(check in made or (check in gone and with_rules) for check in checks)
