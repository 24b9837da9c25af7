"""Routing: the silver table of each event, by its game and the games contract."""

import re
from collections.abc import Collection

import numpy as np
import pyarrow as pa

from gamelake.contract.games import GamesContract, GameSpec, UnlistedGames
from gamelake.model.arrays import Ints
from gamelake.model.naming import game_table

NOWHERE = -1
_PLAIN_TITLE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[ _-][A-Za-z0-9]+)*")
_LONGEST_TITLE = 48


class Router:
    """Maps names of games to tables; caches every name.

    Attributes:
        tables: the tables that events were routed to so far; the codes of `route` are positions in it.
    """

    def __init__(self, contract: GamesContract, unlisted_tables: Collection[str]) -> None:
        self._contract = contract
        self._listed = {name: game.table for game in contract.games for name in game.match}
        self._listed_tables = {game.table for game in contract.games}
        self._unlisted = set(unlisted_tables)
        self._code_by_name: dict[str, int] = {}
        self.tables: list[str] = []

    def route(self, game_names: pa.StringArray) -> Ints:
        """Route events.

        Args:
            game_names: string, one for each event; may be null.

        Returns:
            int64, one for each event: the position of its table in `tables`, or NOWHERE (-1).
        """
        distinct = game_names.dictionary_encode()
        codes = [self._code(name) for name in distinct.dictionary.to_pylist()]
        positions = np.asarray(distinct.indices.fill_null(len(codes)).to_numpy())
        return np.asarray(np.array([*codes, NOWHERE], np.int64)[positions])

    def _code(self, name: str) -> int:
        if name not in self._code_by_name:
            table = self._listed.get(name) or self._unlisted_table(name)
            if table is not None and table not in self.tables:
                self.tables.append(table)
            self._code_by_name[name] = NOWHERE if table is None else self.tables.index(table)
        return self._code_by_name[name]

    def _unlisted_table(self, name: str) -> str | None:
        if self._contract.unlisted_games is UnlistedGames.DEAD_LETTERS:
            return None
        if len(name) > _LONGEST_TITLE or not _PLAIN_TITLE.fullmatch(name):
            return None
        table = game_table(re.sub(r"[ -]", "_", name).lower())
        if table in self._listed_tables:
            return None
        if table not in self._unlisted and len(self._unlisted) >= self._contract.max_unlisted_tables:
            return None
        self._unlisted.add(table)
        return table


def layouts(contract: GamesContract) -> dict[str, GameSpec]:
    """Return the games of the contract, by the paths of their tables."""
    return {game.table: game for game in contract.games}
