"""The rules of a lakehouse: read from their folder, and checked against what its rows are known to have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from gamelake.contracts.games import GamesContract, UnlistedGames
from gamelake.fanout.known_columns import known_columns
from gamelake.lake.store import Store
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.daily import keep_rules
from gamelake.quality.rules import RuleSet
from gamelake.quality.watched import RulesInForce, Unruled, WatchedRules


@dataclass(frozen=True, slots=True)
class Ruling:
    """Where rules stand, and what they are checked against; `schemas` gives the tables' columns as they are now."""

    folder: Path | None
    games_file: Path
    contract: GamesContract
    store: Store
    schemas: Callable[[], Mapping[str, pa.Schema]]

    def watched(self) -> RulesInForce:
        """The rules, which may change while a stream runs.

        Raises:
            ContractError: a rule can't be evaluated; names file and line.
        """
        return Unruled() if self.folder is None else WatchedRules(self.folder, self.check)

    def kept(self) -> RulesInForce:
        """The same, for a stream whose batches name the rules that they were judged by: the lakehouse keeps them.

        Raises:
            ContractError: a rule can't be evaluated; names file and line.
        """
        return Unruled() if self.folder is None else WatchedRules(self.folder, self._checked_and_kept)

    def _checked_and_kept(self, rules: RuleSet) -> CheckedRules:
        checked = self.check(rules)
        keep_rules(self.store, rules)
        return checked

    def check(self, rules: RuleSet) -> CheckedRules:
        """See that rules can judge rows.

        Raises:
            ContractError: one of them can't; names file and line.
        """
        any_game = self.contract.unlisted_games is UnlistedGames.OWN_TABLE
        games = () if any_game else [game.name for game in self.contract.games]
        return check_rules(rules, known_columns(self.games_file, self.store, self.schemas().values()), games)
