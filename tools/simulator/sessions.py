"""Sessions of players: which players are in a session, and the next event of each."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tools.simulator import reference_data
from tools.simulator.defects import Defect, draw_defects
from tools.simulator.event_arrays import SUBSCRIPTION_KINDS, EventArrays, EventKind
from tools.simulator.players import Population, pick
from tools.simulator.spec import NEWEST_VERSION, TrafficSpec

# Events made at once: enough to hide the cost of a numpy call, few enough to stay in the processor's cache.
BLOCK_SLOTS = 16_384
_PLAYERS_PER_SLOT = 8
_MEAN_EVENTS = 14
_PAUSE_TURNS = 6
_SESSION_BYTES, _UUID_BYTES = 6, 16
_MEAN_DELAY_US, _MAX_DELAY_US = 1_500_000, 120_000_000
_RELEASES_PER_RUN = 4.0

# Probability of events between two steps of a level; the rest are the levels' own events.
_PURCHASE, _AD, _ERROR = 0.02, 0.09, 0.10
_REFUND = 0.01
_FAILED = 0.3
# One in 50 players subscribes. A subscriber has a subscription event in every fourth step of a session.
_PLAYERS_PER_SUBSCRIBER, _SUBSCRIPTION_STEPS = 50, 4
_SUBSCRIPTION = len(reference_data.PRODUCTS) - 1


class SessionSimulator:
    """Slots, each of which runs one session after the other.

    A player belongs to one slot, and a block has at most one event of a slot: so the sessions of a player never
    overlap, and no block has two events of one player.
    """

    def __init__(self, spec: TrafficSpec, population: Population, seed: np.random.SeedSequence) -> None:
        self._spec = spec
        self._population = population
        self._random = np.random.default_rng(seed)
        slots = max(1, spec.population // _PLAYERS_PER_SLOT)
        self._order = self._random.permutation(slots)
        self._step = np.zeros(slots, dtype=np.int32)
        self._length = np.zeros(slots, dtype=np.int32)
        self._player = np.zeros(slots, dtype=np.int64)
        self._session = np.zeros((slots, _SESSION_BYTES), dtype=np.uint8)
        self._schema = np.ones(slots, dtype=np.int8)
        self._release = np.zeros(slots, dtype=np.int8)
        self._delay_us = np.zeros(slots, dtype=np.int64)
        self._in_level = np.zeros(slots, dtype=np.bool_)
        # The session's last order: its number, 0 for none, and what was bought.
        self._order_number = np.zeros(slots, dtype=np.int8)
        self._product = np.full(slots, -1, dtype=np.int8)
        self._quantity = np.ones(slots, dtype=np.int32)
        # Not all at once: a run starts in the middle of a day.
        self._next_turn = self._random.integers(0, _MEAN_EVENTS + _PAUSE_TURNS, slots)
        # Events of each player's subscription so far; 0 for players who don't subscribe or have cancelled.
        self._subscription = np.zeros(spec.population, dtype=np.int32)
        self._level = population.first_level.copy()
        self._position = 0

    def blocks(self) -> Iterator[EventArrays]:
        """Generate events until there are as many as the spec asks for."""
        for turn in range(1 << 62):
            for start in range(0, len(self._order), BLOCK_SLOTS):
                slots = self._order[start : start + BLOCK_SLOTS]
                slots = slots[self._next_turn[slots] <= turn][: self._spec.events - self._position]
                if len(slots):
                    yield self._play(slots, turn)
                if self._position >= self._spec.events:
                    return

    def _play(self, slots: npt.NDArray[np.int64], turn: int) -> EventArrays:
        self._start_sessions(slots[self._step[slots] == 0])
        kind = self._kinds(slots)
        events = self._arrays(slots, kind)
        self._advance(slots, kind, turn)
        return events

    def _start_sessions(self, slots: npt.NDArray[np.int64]) -> None:
        """Start a session in each slot, with a player of that slot; some of them play more often than others."""
        count, random = len(slots), self._random
        member = (random.random(count) ** 2 * _PLAYERS_PER_SLOT).astype(np.int64)
        player = (slots + member * len(self._order)) % self._spec.population
        progress = self._position / self._spec.events
        eagerness = self._population.eagerness[player]
        last_release = len(reference_data.RELEASES) - 1
        self._player[slots] = player
        self._length[slots] = 2 + random.geometric(1 / (_MEAN_EVENTS - 2), count)
        self._session[slots] = _random_bytes(random, count, _SESSION_BYTES)
        self._release[slots] = np.minimum((eagerness + progress) * _RELEASES_PER_RUN, last_release)
        self._schema[slots] = 1 + np.minimum(
            (eagerness + progress) / 1.5 * self._spec.versions, self._spec.versions - 1
        )
        self._delay_us[slots] = np.minimum(random.exponential(_MEAN_DELAY_US, count), _MAX_DELAY_US)
        self._in_level[slots] = False
        self._order_number[slots], self._product[slots] = 0, -1

    def _kinds(self, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Draw the kind of the next event of each slot."""
        chance = self._random.random(len(slots), dtype=np.float32)
        failed = self._random.random(len(slots), dtype=np.float32) < _FAILED
        level_ends = np.where(failed, EventKind.LEVEL_FAILED, EventKind.LEVEL_COMPLETED)
        kind = np.where(self._in_level[slots], level_ends, EventKind.LEVEL_STARTED).astype(np.int8)
        kind[chance < _ERROR] = EventKind.ERROR
        kind[chance < _AD] = EventKind.AD_VIEWED
        kind[chance < _PURCHASE] = EventKind.PURCHASE
        kind[(chance >= 1 - _REFUND) & (self._product[slots] >= 0)] = EventKind.REFUND
        step, player = self._step[slots], self._player[slots]
        has_subscription = (player % _PLAYERS_PER_SUBSCRIBER == 0) & (self._schema[slots] == NEWEST_VERSION)
        of_subscription = has_subscription & (step % _SUBSCRIPTION_STEPS == 1)
        kind[of_subscription] = self._subscription_kinds(player[of_subscription])
        kind[step == 0] = EventKind.SESSION_START
        kind[step == self._length[slots] - 1] = EventKind.SESSION_END
        return kind

    def _subscription_kinds(self, player: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the next event of each subscription: a tenth are cancellations, a tenth failed charges."""
        number = self._subscription[player]
        choice = (player // _PLAYERS_PER_SUBSCRIBER + number * 7) % 10
        later = np.select(
            [choice == 0, choice == 1],
            [EventKind.SUBSCRIPTION_CANCELLED, EventKind.SUBSCRIPTION_IN_GRACE],
            EventKind.SUBSCRIPTION_RENEWED,
        )
        return np.where(number == 0, EventKind.SUBSCRIPTION_STARTED, later).astype(np.int8)

    def _advance(self, slots: npt.NDArray[np.int64], kind: npt.NDArray[np.int8], turn: int) -> None:
        """Update the state of the slots after these events."""
        self._step[slots] += 1
        self._in_level[slots[kind == EventKind.LEVEL_STARTED]] = True
        ended = (kind == EventKind.LEVEL_COMPLETED) | (kind == EventKind.LEVEL_FAILED)
        self._in_level[slots[ended]] = False
        self._level[self._player[slots[kind == EventKind.LEVEL_COMPLETED]]] += 1
        self._subscription[self._player[slots[np.isin(kind, SUBSCRIPTION_KINDS)]]] += 1
        self._subscription[self._player[slots[kind == EventKind.SUBSCRIPTION_CANCELLED]]] = 0
        left = slots[kind == EventKind.SESSION_END]
        self._step[left] = 0
        self._next_turn[left] = turn + 1 + self._random.integers(0, _PAUSE_TURNS, len(left))

    def _arrays(self, slots: npt.NDArray[np.int64], kind: npt.NDArray[np.int8]) -> EventArrays:
        count, random = len(slots), self._random
        player = self._player[slots]
        defects = draw_defects(self._spec.shares, count, random)
        salt = random.integers(1 << 63, size=count, dtype=np.uint64)
        known, unknown = len(self._spec.game_names), len(reference_data.UNKNOWN_GAMES)
        stray = known + (salt % np.uint64(unknown)).astype(np.int16)
        position = np.arange(self._position, self._position + count, dtype=np.int64)
        self._position += count
        event_id, score = _random_bytes(random, count, _UUID_BYTES), self._scores(kind)
        product, quantity = self._ordered(slots, kind, salt)
        return EventArrays(
            position=position,
            event_id=event_id,
            kind=kind,
            player=player,
            game=np.where(defects.defect == Defect.UNKNOWN_GAME, stray, self._population.game[player]),
            session=self._session[slots],
            schema=self._schema[slots],
            release=self._release[slots],
            level=self._level[player],
            score=score,
            product=product,
            quantity=quantity,
            order=self._order_number[slots],
            error=self._some(kind == EventKind.ERROR, reference_data.ERROR_WEIGHTS),
            response_ms=(salt % np.uint64(30_000)).astype(np.int64),
            delay_us=self._delay_us[slots],
            defect=defects.defect,
            shift_us=defects.shift_us,
            salt=salt,
        )

    def _ordered(
        self, slots: npt.NDArray[np.int64], kind: npt.NDArray[np.int8], salt: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Draw the products and quantities that are bought; a refund is that of the session's last order, once."""
        is_refund = kind == EventKind.REFUND
        product = self._some(kind == EventKind.PURCHASE, reference_data.PRODUCT_WEIGHTS)
        product[is_refund] = self._product[slots[is_refund]]
        product[np.isin(kind, SUBSCRIPTION_KINDS)] = _SUBSCRIPTION
        quantity = 1 + (salt % np.uint64(16) == 0).astype(np.int32)
        quantity[is_refund] = self._quantity[slots[is_refund]]
        quantity[np.isin(kind, SUBSCRIPTION_KINDS)] = 1
        bought = slots[kind == EventKind.PURCHASE]
        self._order_number[bought] += 1
        self._product[bought], self._quantity[bought] = (
            each[kind == EventKind.PURCHASE] for each in (product, quantity)
        )
        self._product[slots[is_refund]] = -1
        return product, quantity

    def _scores(self, kind: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
        gained = self._random.integers(10, 500, len(kind), dtype=np.int32)
        return np.where(kind == EventKind.LEVEL_FAILED, -(gained // 10), gained)

    def _some(self, hit: npt.NDArray[np.bool_], weights: tuple[float, ...]) -> npt.NDArray[np.int8]:
        numbers = np.full(len(hit), -1, dtype=np.int8)
        numbers[hit] = pick(self._random, weights, int(hit.sum()))
        return numbers


def _random_bytes(random: np.random.Generator, rows: int, width: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(random.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
