"""The dimensions of new players: splits the players of a first day by country, platform, app version and source.

A player's value of a dimension comes from the first event on the first day that has one; without such an event it is
`unknown`. Each first day keeps the 20 values with the most new players; all other values become `other`. The choice
depends only on that day, so a new day never changes an older one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from gamelake.model.arrays import Ints
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.numbers import PLAYER_KEY, KnownPlayers, Numbers
from gamelake.serving.kpis.sets import Split, as_numbers, as_set
from gamelake.serving.kpis.sources import PLAYER_DAYS, GoldSources, SourceChanges, first_value
from gamelake.serving.kpis.tables import DIMENSIONS

UNKNOWN, OTHER = "unknown", "other"
# The values of a dimension that a first day keeps.
MOST_VALUES = 20
_OF_DAY = f"FROM day_players SEMI JOIN asked_day USING (event_date, game_name) WHERE {PLAYER_DAYS.rows}"
_VALUES = ", ".join(f"coalesce(nullif({first_value(name)}, ''), '{UNKNOWN}') AS {name}" for name in DIMENSIONS)
_KEYS = f"SELECT {PLAYER_KEY} AS key {_OF_DAY}"
_FIRST = f"SELECT key, {_VALUES} FROM (SELECT *, {PLAYER_KEY} AS key {_OF_DAY}) SEMI JOIN newcomers USING (key)"  # noqa: S608 # constants
SQL = (_KEYS, _FIRST)


@dataclass(slots=True)
class FirstValues:
    """Splits the new players of one game's days by the values of their dimensions.

    Attributes:
        game: the game's title.
        sources: the gold tables that KPIs are computed from.
        changes: the changes of the table of players' days.
        known: the index of players who have numbers.
        sql: the engine that reads rows.
    """

    game: str
    sources: GoldSources
    changes: SourceChanges
    known: KnownPlayers
    sql: Engine
    _players: dict[date, tuple[Ints, Numbers]] = field(default_factory=dict)

    def keep(self, players: Mapping[date, tuple[Ints, Numbers]]) -> None:
        """Keep the keys and the numbers of some days' players until the next call, so that they are read only once."""
        self._players = dict(players)

    def split(self, day: date, players: BitMap) -> Split:
        """Split some players of a day by the values of each dimension.

        Args:
            day: the day.
            players: the numbers of players who played on it.

        Raises:
            FileNotFoundError: a file of gold is deleted already.
        """
        if not players:
            return {}
        self.sources.give(self.sql, "day_players", self.changes, self.changes.files_of(self.game, [day])[day])
        asked = {"event_date": pa.array([day], pa.date32()), "game_name": pa.array([self.game], pa.string())}
        self.sql.give("asked_day", pa.table(asked))
        keys, numbers = self._players.get(day) or self._numbered()
        is_new = np.isin(numbers, as_numbers(players))
        self.sql.give("newcomers", pa.table({"key": keys[is_new]}))
        found = self.sql.table(_FIRST)
        numbers, _ = self.known.find(found.column("key").to_numpy())
        return {
            (name, value): of_value
            for name in DIMENSIONS
            for value, of_value in by_value(numbers, found.column(name), players).items()
        }

    def _numbered(self) -> tuple[Ints, Numbers]:
        keys: Ints = self.sql.table(_KEYS).column("key").to_numpy()
        numbers, known = self.known.find(keys)
        return keys[known], numbers[known]


def by_value(numbers: Numbers, values: pa.ChunkedArray, players: BitMap) -> dict[str, BitMap]:
    """Split players by their values, and keep the largest values.

    Args:
        numbers: uint32 of shape (n,), the players' numbers in any order.
        values: string of length n, the value of each of them.
        players: all players to split; a player who is not in `numbers` counts as unknown.

    Returns:
        The players of each value, in ascending order of the values.
    """
    encoded = pc.dictionary_encode(values.combine_chunks())
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    in_order = np.split(numbers[np.argsort(codes, kind="stable")], ends[:-1]) if names else []
    sets = {name: as_set(part) & players for name, part in zip(names, in_order, strict=True)}
    ranked = sorted(sets.keys() - {UNKNOWN, OTHER}, key=lambda name: (-len(sets[name]), name))
    found = {name: sets[name] for name in ranked[:MOST_VALUES]}
    found[OTHER] = BitMap.union(BitMap(), *(sets[name] for name in {*ranked[MOST_VALUES:], OTHER} & sets.keys()))
    found[UNKNOWN] = players - BitMap.union(BitMap(), *found.values())
    for each in found.values():
        each.run_optimize()
    return {name: found[name] for name in sorted(found) if found[name]}
