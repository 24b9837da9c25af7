"""Records for Kafka: the players' events with a clock, encoded, and spoiled where the spec says so."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gamelake.errors import SettingsError
from services.simulator.columns import Scene, Titles
from services.simulator.encoding import Encoder
from services.simulator.fates import Fate
from services.simulator.moments import Moments
from services.simulator.players import make_population
from services.simulator.sessions import BLOCK_SEATS, Arcade
from services.simulator.spec import TrafficSpec
from services.simulator.spoil import spoil
from services.simulator.timeline import Clock, Timeline, wall_clock


@dataclass(frozen=True, slots=True)
class Parcel:
    """Records to send together; no two of them, but for duplicates, are of one player."""

    keys: pa.StringArray
    values: pa.BinaryArray
    moments: Moments

    @property
    def value_bytes(self) -> int:
        """Size of the values together."""
        ends = np.frombuffer(self.values.buffers()[1], dtype=np.int32)
        return int(ends[self.values.offset + len(self.values)] - ends[self.values.offset])


class Traffic:
    """A run of the simulator.

    Args:
        encoders: one per version of the contract, from version 1 on.
    """

    def __init__(self, spec: TrafficSpec, encoders: Sequence[Encoder], clock: Clock = wall_clock) -> None:
        if [each.version for each in encoders] != list(range(1, spec.versions + 1)):
            raise SettingsError(f"there must be one encoder for each of {spec.versions} versions, in order")
        population_seed, arcade_seed = np.random.SeedSequence(spec.seed).spawn(2)
        random = np.random.default_rng(population_seed)
        self._encoders = encoders
        self._clock = clock
        self._population = make_population(spec.population, len(spec.game_names), random)
        self._arcade = Arcade(spec, self._population, arcade_seed)
        self._timeline = Timeline(history=spec.history, events=spec.events, now_us=clock())
        self._titles = Titles.of(spec.game_names)

    def parcels(self, events: int = BLOCK_SEATS) -> Iterator[Parcel]:
        """Make the run's records, so many events at a time at most; each parcel is stamped when it is asked for."""
        for block in self._arcade.blocks():
            for start in range(0, len(block), events):
                yield self._parcel(block[start : start + events])

    def _parcel(self, moments: Moments) -> Parcel:
        scene = self._scene(moments)
        groups = [(each, scene[moments.schema == each.version]) for each in self._encoders]
        values = pa.concat_arrays([encoder.encode(group) for encoder, group in groups if len(group.moments)])
        moments = moments[np.argsort(moments.schema, kind="stable")]
        values, keys = _spoiled(values, moments), self._population.gamer_ids.take(pa.array(moments.player))
        again = pa.array(np.flatnonzero(moments.fate == Fate.DUPLICATED))
        return Parcel(
            keys=pa.concat_arrays([keys, keys.take(again)]),
            values=pa.concat_arrays([values, values.take(again)]),
            moments=moments,
        )

    def _scene(self, moments: Moments) -> Scene:
        now_us = self._clock()
        happened_us = self._timeline.event_times_us(moments.position, now_us)
        return Scene(
            moments=moments,
            population=self._population,
            titles=self._titles,
            event_time_us=(happened_us - moments.delay_us + moments.shift_us) // 1000 * 1000,
            ingest_time_us=now_us,
        )


def _spoiled(values: pa.BinaryArray, moments: Moments) -> pa.BinaryArray:
    bad = np.flatnonzero(moments.fate == Fate.UNDECODABLE)
    if not len(bad):
        return values
    replaced = np.arange(len(values))
    replaced[bad] = len(values) + np.arange(len(bad))
    spoiled = spoil(values.take(pa.array(bad)), moments.salt[bad])
    return pa.concat_arrays([values, spoiled]).take(pa.array(replaced))
