"""Records for Kafka: the players' events with a clock, encoded, and spoiled where the spec says so."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.errors import SettingsError
from tools.simulator.columns import Scene, Titles
from tools.simulator.defects import Fate, spoil_record
from tools.simulator.event_arrays import Moments
from tools.simulator.incidents import Incidents
from tools.simulator.players import make_population
from tools.simulator.sessions import BLOCK_SEATS, Arcade
from tools.simulator.spec import TrafficSpec

# Microseconds since 1970.
Clock: TypeAlias = Callable[[], int]

_DAY = 86_400.0
_PEAK_HOUR, _SWING = 19.0, 0.55
_STEPS = 2_048


def wall_clock() -> int:
    """Give the machine's time."""
    return time.time_ns() // 1000


class Timeline:
    """Spreads a run's events over the simulated time before now, denser in the evening (UTC) than at night."""

    def __init__(self, *, history: timedelta, events: int, now_us: int) -> None:
        ages = np.linspace(history.total_seconds(), 0, _STEPS)
        end = datetime.fromtimestamp(now_us / 1e6, UTC)
        end_seconds = end.hour * 3600 + end.minute * 60 + end.second
        busy = 1 + _SWING * np.cos((end_seconds - ages - _PEAK_HOUR * 3600) / _DAY * 2 * np.pi)
        done = np.concatenate(([0.0], np.cumsum(busy[1:])))
        self._done = done / done[-1] * events
        self._ages_us = ages * 1e6

    def event_times_us(self, positions: npt.NDArray[np.int64], now_us: int) -> npt.NDArray[np.int64]:
        """Give each event's time, in whole milliseconds."""
        ages_us = np.interp(positions, self._done, self._ages_us)
        return (now_us - ages_us).astype(np.int64) // 1000 * 1000


@dataclass(frozen=True, slots=True)
class Parcel:
    """Records to send together; no two of them, but for duplicates, are of one player.

    `origin` has the number of each record's moment; records beyond the moments are duplicates.
    """

    keys: pa.StringArray
    values: pa.BinaryArray
    moments: Moments
    origin: npt.NDArray[np.int64]

    @property
    def value_bytes(self) -> int:
        """Size of the values together."""
        ends = np.frombuffer(self.values.buffers()[1], dtype=np.int32)
        return int(ends[self.values.offset + len(self.values)] - ends[self.values.offset])


class EventWriter(Protocol):
    """Writes events as one version of the contract."""

    version: int

    def encode(self, scene: Scene) -> pa.BinaryArray:
        """Give one value per event."""


Spoil: TypeAlias = Callable[[pa.BinaryArray, npt.NDArray[np.uint64]], pa.BinaryArray]


class Traffic:
    """A run of the simulator.

    Args:
        encoders: one per version of the contract, from version 1 on.
        spoil: makes values undecodable, each in the way that its salt says.
    """

    def __init__(
        self, spec: TrafficSpec, encoders: Sequence[EventWriter], clock: Clock = wall_clock, spoil: Spoil = spoil_record
    ) -> None:
        if [each.version for each in encoders] != list(range(1, spec.versions + 1)):
            raise SettingsError(f"there must be one encoder for each of {spec.versions} versions, in order")
        population_seed, arcade_seed = np.random.SeedSequence(spec.seed).spawn(2)
        random = np.random.default_rng(population_seed)
        self._encoders = encoders
        self._clock = clock
        self._spoil = spoil
        self.population = make_population(spec.population, len(spec.game_names), random, spec.naming)
        self._arcade = Arcade(spec, self.population, arcade_seed)
        self._timeline = Timeline(history=spec.history, events=spec.events, now_us=clock())
        self._titles = Titles.of(spec.game_names)
        self._incidents = Incidents(spec.incidents, spec.game_names)

    def parcels(self, events: int = BLOCK_SEATS) -> Iterator[Parcel]:
        """Make the run's records, so many events at a time at most; each parcel is stamped when it is asked for."""
        for block in self._arcade.blocks():
            for start in range(0, len(block), events):
                moments = self._as_it_happens(block[start : start + events])
                if len(moments):
                    yield self._parcel(moments)

    def _parcel(self, moments: Moments) -> Parcel:
        scene = self._scene(moments)
        groups = [(each, scene[moments.schema == each.version]) for each in self._encoders]
        values = pa.concat_arrays([encoder.encode(group) for encoder, group in groups if len(group.moments)])
        moments = moments[np.argsort(moments.schema, kind="stable")]
        values, keys = self._spoiled(values, moments), self.population.gamer_ids.take(pa.array(moments.player))
        again = np.flatnonzero(moments.fate == Fate.DUPLICATED)
        return Parcel(
            keys=pa.concat_arrays([keys, keys.take(pa.array(again))]),
            values=pa.concat_arrays([values, values.take(pa.array(again))]),
            moments=moments,
            origin=np.concatenate([np.arange(len(moments)), again]),
        )

    def _as_it_happens(self, moments: Moments) -> Moments:
        if not self._incidents.incidents:
            return moments
        happened_us = self._timeline.event_times_us(moments.position, self._clock())
        return self._incidents.happen(moments, happened_us)

    def home_games(self, moments: Moments) -> npt.NDArray[np.int16]:
        """The game whose SDK each event comes from, whatever game it names."""
        return self.population.game[moments.player]

    def _scene(self, moments: Moments) -> Scene:
        now_us = self._clock()
        happened_us = self._timeline.event_times_us(moments.position, now_us)
        return Scene(
            moments=moments,
            population=self.population,
            titles=self._titles,
            event_time_us=(happened_us - moments.delay_us + moments.shift_us) // 1000 * 1000,
            ingest_time_us=now_us,
        )

    def _spoiled(self, values: pa.BinaryArray, moments: Moments) -> pa.BinaryArray:
        bad = np.flatnonzero(moments.fate == Fate.UNDECODABLE)
        if not len(bad):
            return values
        replaced = np.arange(len(values))
        replaced[bad] = len(values) + np.arange(len(bad))
        spoiled = self._spoil(values.take(pa.array(bad)), moments.salt[bad])
        return pa.concat_arrays([values, spoiled]).take(pa.array(replaced))
