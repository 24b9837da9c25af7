"""Generates days of events of thirty games, column by column: sessions of players with different activity."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa

from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.arrays import Ints
from tools.simulator.text import fixed_width_text, hex_digits, uuid_text

_EVENTS_PER_SESSION = 14
_SKEW = 0.8  # how much more popular the first game is than the last
_DAY_SECONDS = 86_400
_NAMES = pa.array(
    [
        "session_start",
        "level_started",
        "level_completed",
        "level_failed",
        "ad_viewed",
        "error",
        "purchase",
        "session_end",
    ]
)
_START, _ERROR, _PURCHASE, _END = 0, 5, 6, 7
_BETWEEN, _SHARES = [1, 2, 3, 4, _ERROR, _PURCHASE], [0.44, 0.28, 0.12, 0.10, 0.04, 0.02]
_PLATFORMS, _VERSIONS = pa.array(["android", "ios", "web"]), pa.array(["4.0.0", "4.1.0", "4.2.0", "5.0.0"])
_PRODUCTS, _PRICES = pa.array(["gems", "pack", "pass", "chest"]), np.array([0.99, 2.99, 9.99, 24.99])


@dataclass(frozen=True, slots=True)
class DayOfEvents:
    """A day's events by time; `events` has the common columns, `details` the additional columns of a game's table."""

    day: date
    events: pa.Table
    details: pa.Table


class SimulatedPlayers:
    """All players; half of them play from the first day on, the others start one after the other."""

    def __init__(self, games: Sequence[str], players: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._games = pa.array(games)
        popularity = 1 / np.arange(1, len(games) + 1) ** _SKEW
        self._game = self._random.choice(len(games), players, p=popularity / popularity.sum())
        self._platform = self._random.choice(3, players, p=(0.56, 0.36, 0.08))
        # Sixteen random bytes, as the vault's pseudonyms.
        names = np.frombuffer(self._random.bytes(16 * players), np.uint8).reshape(players, 16)
        self._names = fixed_width_text(hex_digits(names))
        self._level = self._random.geometric(0.05, players)

    def day(self, day: date, rows: int, progress: float) -> DayOfEvents:
        """Generate `rows` events of a day; `progress` from 0 to 1 is the elapsed share of the days."""
        random, sessions = self._random, rows // _EVENTS_PER_SESSION + 1
        known = int(len(self._game) * (0.5 + 0.5 * progress))
        player = (random.random(sessions) ** 1.5 * known).astype(np.int64)
        lengths = 2 + random.geometric(1 / (_EVENTS_PER_SESSION - 2), sessions)
        session = np.repeat(np.arange(sessions), lengths)[:rows]
        step = (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths))[: len(session)]
        kind = np.array(_BETWEEN)[random.choice(len(_BETWEEN), len(session), p=_SHARES)]
        kind[step == 0] = _START
        kind[step == lengths[session] - 1] = _END
        began, gap = random.integers(0, _DAY_SECONDS - 3_600, sessions), random.integers(3, 40, sessions)
        micros: Ints = np.asarray((began[session] + step * gap[session]) * 1_000_000, np.int64)
        micros += random.integers(0, 1_000, len(session)) * 1_000
        order = np.argsort(micros, kind="stable")
        return self._rows(day, player[session][order], kind[order], micros[order], session[order], progress)

    def _rows(  # the columns of a day's events
        self, day: date, player: Ints, kind: Ints, micros: Ints, session: Ints, progress: float
    ) -> DayOfEvents:
        count, random = len(player), self._random
        midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000
        times = pa.array(midnight + np.minimum(micros, _DAY_SECONDS * 1_000_000 - 1)).view(pa.timestamp("us", "UTC"))
        product = random.choice(4, count, p=(0.6, 0.2, 0.15, 0.05))
        sold = kind == _PURCHASE
        sessions = np.frombuffer(random.bytes(6 * (int(session.max()) + 1)), np.uint8).reshape(-1, 6)
        newest = np.minimum((random.random(count) * 0.5 + progress) * 2.6, 3).astype(np.int64)
        columns = {
            "event_time": times,
            "event_name": _NAMES.take(pa.array(kind)),
            "game_name": self._games.take(pa.array(self._game[player])),
            "gamer_id": self._names.take(pa.array(player)),
            "session_id": fixed_width_text(hex_digits(sessions)).take(pa.array(session)),
            "platform": _PLATFORMS.take(pa.array(self._platform[player])),
            # By player, so that few play two versions on one day.
            "app_version": _VERSIONS.take(pa.array(newest[player % count])),
            "amount": pa.array(_PRICES[product], mask=~sold),
            "ingest_time": pa.array(times.cast(pa.int64()).to_numpy() + 900_000).view(pa.timestamp("us", "UTC")),
            "kafka_partition": pa.array(player % 8),
            "kafka_offset": pa.array(np.arange(count)),
            "event_id": uuid_text(np.frombuffer(random.bytes(16 * count), np.uint8).reshape(count, 16)),
        }
        events = pa.table({name: columns[name] for name in COMMON_SCHEMA.names}, schema=COMMON_SCHEMA)
        return DayOfEvents(day, events, self._details(player, kind, product, times))

    def _details(self, player: Ints, kind: Ints, product: Ints, times: pa.Array) -> pa.Table:
        sold, failed = pa.array(kind != _PURCHASE), pa.array(kind != _ERROR)
        enrolled = pa.array([[], ["offer_b"]], pa.list_(pa.string()))
        bought = [_PRODUCTS.take(pa.array(product)), pa.array(1 + (product == 0).astype(np.int64))]
        skew = np.where(player % 50 == 0, 120_000_000, 2_000_000)
        return pa.table(
            {
                "device_id": self._names.take(pa.array(player)),
                "client_event_time": pa.array(times.cast(pa.int64()).to_numpy() + skew).view(times.type),
                "level": pa.array(self._level[player]),
                "purchase": pa.StructArray.from_arrays(bought, ["product_id", "quantity"], mask=sold),
                "experiment_ids": enrolled.take(pa.array((player % 10 == 0).astype(np.int64))),
                "error": pa.StructArray.from_arrays([pa.array(product == 0)], ["fatal"], mask=failed),
            }
        )


def days_until(today: date, count: int) -> list[date]:
    """`count` days, the last of which is `today`."""
    return [today - timedelta(days=before) for before in range(count - 1, -1, -1)]
