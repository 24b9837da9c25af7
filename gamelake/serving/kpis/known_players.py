"""Which players the KPI tables know: kept in memory from batch to batch, so that a batch reads what it changes.

A file of the players' table never changes: each is read once, and a batch replaces those of the days that it writes.
Of a player there are 63 bits of a hash in memory, 8 bytes: with 10,000,000 known players, one new player in 900,000
million is taken for a known one.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.serving.kpis.day_tables import DayTable
from gamelake.storage.sql_engine import Engine

Keys = npt.NDArray[np.int64]
# Of a player, in SQL; by the same version of DuckDB always the same.
PLAYER_KEY = "CAST(hash(game_name, gamer_id) >> 1 AS BIGINT)"
_EPOCH = date(1970, 1, 1)
_UNKNOWN = np.iinfo(np.int32).max
DEPTHS_SCHEMA = pa.schema([("game_name", pa.string()), ("halvings", pa.int64()), ("players", pa.int64())])


@dataclass(frozen=True, slots=True)
class _FilePlayers:
    """The players of one file: their keys in ascending order, and how many each game has, by name and halvings."""

    day: date
    keys: Keys
    counts: Counter[tuple[str, int]]


@dataclass(slots=True)
class KnownPlayers:
    """The players of the table of players, as of the last `refresh`."""

    _files: dict[str, _FilePlayers] = field(default_factory=dict)

    def refresh(self, table: DayTable, sql: Engine) -> int:
        """Read the files that came since the last time, and forget those that went; gives the number of rows read."""
        files = table.files()
        self._files = {path: known for path, known in self._files.items() if path in files}
        read = 0
        for path in files.keys() - self._files.keys():
            rows = table.rows_of([path])
            self._files[path] = _players(rows, files[path], sql)
            read += len(rows)
        return read

    def first_days(self, keys: Keys) -> pa.Array:
        """The first day of each player of some keys (int64), in their order: date32, null for an unknown player."""
        order = np.argsort(keys, kind="stable")
        wanted, found = keys[order], np.full(len(keys), _UNKNOWN, np.int32)
        for each in (each for each in self._files.values() if len(each.keys)):
            at = np.minimum(np.searchsorted(each.keys, wanted), len(each.keys) - 1)
            here = each.keys[at] == wanted
            found[here] = np.minimum(found[here], (each.day - _EPOCH).days)
        days = np.empty_like(found)
        days[order] = found
        return pa.array(days, pa.int32(), mask=days == _UNKNOWN).cast(pa.date32())

    def depths(self) -> pa.Table:
        """How often the sample of each game was halved, and how many players it has: columns of `DEPTHS_SCHEMA`."""
        players, halvings = Counter[str](), dict[str, int]()
        for each in self._files.values():
            for (game, depth), count in each.counts.items():
                players[game] += count
                halvings[game] = max(depth, halvings.get(game, 0))
        rows = [{"game_name": game, "halvings": halvings[game], "players": count} for game, count in players.items()]
        return pa.Table.from_pylist(rows, schema=DEPTHS_SCHEMA)


def _players(rows: pa.Table, day: date, sql: Engine) -> _FilePlayers:
    sql.give("file_rows", rows)
    keys = np.sort(sql.table(f"SELECT {PLAYER_KEY} AS key FROM file_rows").column("key").to_numpy())  # noqa: S608 # a constant
    counts = sql.table("SELECT game_name, halvings, count(*) AS players FROM file_rows GROUP BY ALL").to_pylist()
    return _FilePlayers(day, keys, Counter({(row["game_name"], row["halvings"]): row["players"] for row in counts}))
