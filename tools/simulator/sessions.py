"""Players at play: who is in a session, and what happens next to each of them."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tools.simulator import reference_data
from tools.simulator.defects import Fate, draw_fates
from tools.simulator.event_arrays import Happening, Moments
from tools.simulator.players import Population, pick
from tools.simulator.spec import TrafficSpec

# Events made at one go: enough to hide what a call of numpy costs, few enough to stay in the processor's cache.
BLOCK_SEATS = 16_384
_PLAYERS_PER_SEAT = 8
_MEAN_EVENTS = 14
_PAUSE_ROUNDS = 6
_SESSION_BYTES, _UUID_BYTES = 6, 16
_MEAN_DELAY_US, _MAX_DELAY_US = 1_500_000, 120_000_000
_RELEASES_PER_RUN = 4.0

# What may come between two steps of a level; the rest of the chance goes to the game itself.
_PURCHASE, _AD, _ERROR = 0.02, 0.09, 0.10
_FAILED = 0.3


class Arcade:
    """Seats at which the players take turns, one session after the other.

    A player belongs to one seat, and a block visits a seat at most once: so the sessions of a player never overlap, and
    no block holds two events of one player.
    """

    def __init__(self, spec: TrafficSpec, population: Population, seed: np.random.SeedSequence) -> None:
        self._spec = spec
        self._population = population
        self._random = np.random.default_rng(seed)
        seats = max(1, spec.population // _PLAYERS_PER_SEAT)
        self._order = self._random.permutation(seats)
        self._step = np.zeros(seats, dtype=np.int32)
        self._length = np.zeros(seats, dtype=np.int32)
        self._player = np.zeros(seats, dtype=np.int64)
        self._session = np.zeros((seats, _SESSION_BYTES), dtype=np.uint8)
        self._schema = np.ones(seats, dtype=np.int8)
        self._release = np.zeros(seats, dtype=np.int8)
        self._delay_us = np.zeros(seats, dtype=np.int64)
        self._in_level = np.zeros(seats, dtype=np.bool_)
        # Not all at once: a run begins in the middle of a day.
        self._wakes = self._random.integers(0, _MEAN_EVENTS + _PAUSE_ROUNDS, seats)
        self._level = population.first_level.copy()
        self._position = 0

    def blocks(self) -> Iterator[Moments]:
        """Play until all events of the spec have happened."""
        for turn in range(1 << 62):
            for start in range(0, len(self._order), BLOCK_SEATS):
                seats = self._order[start : start + BLOCK_SEATS]
                seats = seats[self._wakes[seats] <= turn][: self._spec.events - self._position]
                if len(seats):
                    yield self._play(seats, turn)
                if self._position >= self._spec.events:
                    return

    def _play(self, seats: npt.NDArray[np.int64], turn: int) -> Moments:
        self._sit_down(seats[self._step[seats] == 0])
        happening = self._happenings(seats)
        moments = self._moments(seats, happening)
        self._go_on(seats, happening, turn)
        return moments

    def _sit_down(self, seats: npt.NDArray[np.int64]) -> None:
        """Begin a session at each seat, with a player of that seat, some of whom come more often."""
        count, random = len(seats), self._random
        member = (random.random(count) ** 2 * _PLAYERS_PER_SEAT).astype(np.int64)
        player = (seats + member * len(self._order)) % self._spec.population
        progress = self._position / self._spec.events
        eagerness = self._population.eagerness[player]
        last_release = len(reference_data.RELEASES) - 1
        self._player[seats] = player
        self._length[seats] = 2 + random.geometric(1 / (_MEAN_EVENTS - 2), count)
        self._session[seats] = _random_bytes(random, count, _SESSION_BYTES)
        self._release[seats] = np.minimum((eagerness + progress) * _RELEASES_PER_RUN, last_release)
        self._schema[seats] = 1 + np.minimum(
            (eagerness + progress) / 1.5 * self._spec.versions, self._spec.versions - 1
        )
        self._delay_us[seats] = np.minimum(random.exponential(_MEAN_DELAY_US, count), _MAX_DELAY_US)
        self._in_level[seats] = False

    def _happenings(self, seats: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Decide what comes next at each seat."""
        chance = self._random.random(len(seats), dtype=np.float32)
        failed = self._random.random(len(seats), dtype=np.float32) < _FAILED
        level_ends = np.where(failed, Happening.LEVEL_FAILED, Happening.LEVEL_COMPLETED)
        happening = np.where(self._in_level[seats], level_ends, Happening.LEVEL_STARTED).astype(np.int8)
        happening[chance < _ERROR] = Happening.ERROR
        happening[chance < _AD] = Happening.AD_VIEWED
        happening[chance < _PURCHASE] = Happening.PURCHASE
        step = self._step[seats]
        happening[step == 0] = Happening.SESSION_START
        happening[step == self._length[seats] - 1] = Happening.SESSION_END
        return happening

    def _go_on(self, seats: npt.NDArray[np.int64], happening: npt.NDArray[np.int8], turn: int) -> None:
        """Bring the seats to where they are after these events."""
        self._step[seats] += 1
        self._in_level[seats[happening == Happening.LEVEL_STARTED]] = True
        ended = (happening == Happening.LEVEL_COMPLETED) | (happening == Happening.LEVEL_FAILED)
        self._in_level[seats[ended]] = False
        self._level[self._player[seats[happening == Happening.LEVEL_COMPLETED]]] += 1
        left = seats[happening == Happening.SESSION_END]
        self._step[left] = 0
        self._wakes[left] = turn + 1 + self._random.integers(0, _PAUSE_ROUNDS, len(left))

    def _moments(self, seats: npt.NDArray[np.int64], happening: npt.NDArray[np.int8]) -> Moments:
        count, random = len(seats), self._random
        player = self._player[seats]
        fates = draw_fates(self._spec.shares, count, random)
        salt = random.integers(1 << 63, size=count, dtype=np.uint64)
        known, unknown = len(self._spec.game_names), len(reference_data.UNKNOWN_GAMES)
        stray = known + (salt % np.uint64(unknown)).astype(np.int16)
        position = np.arange(self._position, self._position + count, dtype=np.int64)
        self._position += count
        return Moments(
            position=position,
            event_id=_random_bytes(random, count, _UUID_BYTES),
            happening=happening,
            player=player,
            game=np.where(fates.fate == Fate.UNKNOWN_GAME, stray, self._population.game[player]),
            session=self._session[seats],
            schema=self._schema[seats],
            release=self._release[seats],
            level=self._level[player],
            score=self._scores(happening),
            product=self._some(happening == Happening.PURCHASE, reference_data.PRODUCT_WEIGHTS),
            quantity=1 + (salt % np.uint64(16) == 0).astype(np.int32),
            error=self._some(happening == Happening.ERROR, reference_data.ERROR_WEIGHTS),
            response_ms=(salt % np.uint64(30_000)).astype(np.int64),
            delay_us=self._delay_us[seats],
            fate=fates.fate,
            shift_us=fates.shift_us,
            salt=salt,
        )

    def _scores(self, happening: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
        gained = self._random.integers(10, 500, len(happening), dtype=np.int32)
        return np.where(happening == Happening.LEVEL_FAILED, -(gained // 10), gained)

    def _some(self, hit: npt.NDArray[np.bool_], weights: tuple[float, ...]) -> npt.NDArray[np.int8]:
        numbers = np.full(len(hit), -1, dtype=np.int8)
        numbers[hit] = pick(self._random, weights, int(hit.sum()))
        return numbers


def _random_bytes(random: np.random.Generator, rows: int, width: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(random.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
