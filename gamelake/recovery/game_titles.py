"""The titles of a game: the values of `game_name` that assign rows of a table of all games to the game."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.contract.games import GamesContract
from gamelake.layers.routing import Router
from gamelake.model.naming import game_table


@dataclass(frozen=True, slots=True)
class RestoredTitles:
    """Decides which titles belong to a game: those of the contract, and former ones that no game claims.

    A title in the game's own table is not sufficient: a faulty version may have written another game's events to it.

    Attributes:
        game: the game's name.
        contract: the games contract.
        tables: the games' tables that exist.
        former: the titles that the game's table had at the version to restore.
    """

    game: str
    contract: GamesContract
    tables: frozenset[str]
    former: frozenset[str]

    def have(self, titles: pa.ChunkedArray) -> pa.ChunkedArray:
        """Flag the rows of the game.

        Args:
            titles: string, one for each row; may be null.

        Returns:
            A bool for each row; false for null.
        """
        distinct = titles.unique().drop_null()
        router = Router(self.contract, self.tables)
        routed = [router.tables[code] if code >= 0 else "" for code in router.route(distinct)]
        pairs = zip(distinct.to_pylist(), routed, strict=True)
        ours = pa.array([title for title, table in pairs if self._is_ours(title, table)], pa.string())
        return pc.fill_null(pc.is_in(titles, value_set=ours), False)

    def _is_ours(self, title: str, routed: str) -> bool:
        """Return True if a title, which the contract routes to the table `routed`, belongs to the game."""
        others = self.tables | {game.table for game in self.contract.games}
        return routed == game_table(self.game) or (title in self.former and routed not in others)
