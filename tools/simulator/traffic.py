"""Batches of records: events with timestamps, encoded, with the defects that the spec asks for."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.errors import SettingsError
from tools.simulator.columns import EventContext, GameTitles
from tools.simulator.defects import Corrupted, Defect, corrupt_records
from tools.simulator.event_arrays import EventArrays
from tools.simulator.incidents import Incidents
from tools.simulator.players import make_population
from tools.simulator.sessions import BLOCK_SLOTS, SessionSimulator
from tools.simulator.spec import TrafficSpec

# Microseconds since 1970.
Clock: TypeAlias = Callable[[], int]

_DAY = 86_400.0
_PEAK_HOUR, _SWING = 19.0, 0.55
_STEPS = 2_048


def wall_clock() -> int:
    """Return the machine's time."""
    return time.time_ns() // 1000


class Timeline:
    """Spreads a run's events over the simulated time before now: more in the evening (UTC), fewer at night."""

    def __init__(self, *, history: timedelta, events: int, now_us: int) -> None:
        ages = np.linspace(history.total_seconds(), 0, _STEPS)
        end = datetime.fromtimestamp(now_us / 1e6, UTC)
        end_seconds = end.hour * 3600 + end.minute * 60 + end.second
        busy = 1 + _SWING * np.cos((end_seconds - ages - _PEAK_HOUR * 3600) / _DAY * 2 * np.pi)
        done = np.concatenate(([0.0], np.cumsum(busy[1:])))
        self._done = done / done[-1] * events
        self._ages_us = ages * 1e6

    def event_times_us(self, positions: npt.NDArray[np.int64], now_us: int) -> npt.NDArray[np.int64]:
        """Return times of events by their positions in the run: microseconds since 1970, in whole milliseconds."""
        ages_us = np.interp(positions, self._done, self._ages_us)
        return (now_us - ages_us).astype(np.int64) // 1000 * 1000


@dataclass(frozen=True, slots=True)
class TrafficBatch:
    """Records to send together; except for duplicates, no two of them are of one player.

    Attributes:
        keys, values: one row per record.
        events: the events of the records.
        origin: index of each record's event; records behind the first `len(events)` are duplicates.
    """

    keys: pa.StringArray
    values: pa.BinaryArray
    events: EventArrays
    origin: npt.NDArray[np.int64]

    @property
    def value_bytes(self) -> int:
        """Total size of the values."""
        ends = np.frombuffer(self.values.buffers()[1], dtype=np.int32)
        return int(ends[self.values.offset + len(self.values)] - ends[self.values.offset])


class EventEncoder(Protocol):
    """Encodes events as one version of the contract."""

    version: int

    def encode(self, context: EventContext) -> pa.BinaryArray:
        """Encode one value per event."""


Corrupt: TypeAlias = Callable[[pa.BinaryArray, npt.NDArray[np.uint64]], pa.BinaryArray]


class TrafficGenerator:
    """Generates the records of a run.

    Args:
        encoders: one per version of the contract, from version 1 on.
        corrupt: makes values undecodable; gets the values and one salt for each.
    """

    def __init__(
        self,
        spec: TrafficSpec,
        encoders: Sequence[EventEncoder],
        clock: Clock = wall_clock,
        corrupt: Corrupt = corrupt_records,
    ) -> None:
        if [each.version for each in encoders] != list(range(1, spec.versions + 1)):
            raise SettingsError(f"there must be one encoder for each of {spec.versions} versions, in order")
        population_seed, session_seed = np.random.SeedSequence(spec.seed).spawn(2)
        random = np.random.default_rng(population_seed)
        self._encoders = encoders
        self._clock = clock
        self._corrupt = corrupt
        self.population = make_population(spec.population, len(spec.game_names), random, spec.naming)
        self._sessions = SessionSimulator(spec, self.population, session_seed)
        self._timeline = Timeline(history=spec.history, events=spec.events, now_us=clock())
        self._titles = GameTitles.of(spec.game_names)
        self._incidents = Incidents(spec.incidents, spec.game_names)

    def batches(self, most_events: int = BLOCK_SLOTS) -> Iterator[TrafficBatch]:
        """Yield the run's records in batches of `most_events` events at most.

        Each gets its timestamps when it is made.
        """
        for block in self._sessions.blocks():
            for start in range(0, len(block), most_events):
                events = self._with_incidents(block[start : start + most_events])
                if len(events):
                    yield self._batch(events)

    def _batch(self, events: EventArrays) -> TrafficBatch:
        context = self._context_of(events)
        groups = [(each, context[events.schema == each.version]) for each in self._encoders]
        values = pa.concat_arrays([encoder.encode(group) for encoder, group in groups if len(group.events)])
        events = events[np.argsort(events.schema, kind="stable")]
        values, keys = self._corrupted(values, events), self.population.gamer_ids.take(pa.array(events.player))
        again = np.flatnonzero(events.defect == Defect.DUPLICATED)
        return TrafficBatch(
            keys=pa.concat_arrays([keys, keys.take(pa.array(again))]),
            values=pa.concat_arrays([values, values.take(pa.array(again))]),
            events=events,
            origin=np.concatenate([np.arange(len(events)), again]),
        )

    def _with_incidents(self, events: EventArrays) -> EventArrays:
        if not self._incidents.incidents:
            return events
        happened_us = self._timeline.event_times_us(events.position, self._clock())
        return self._incidents.apply(events, happened_us)

    def home_games(self, events: EventArrays) -> npt.NDArray[np.int16]:
        """Return the index of the game whose SDK sends each event, whatever game the event names."""
        return self.population.game[events.player]

    def _context_of(self, events: EventArrays) -> EventContext:
        now_us = self._clock()
        happened_us = self._timeline.event_times_us(events.position, now_us)
        return EventContext(
            events=events,
            population=self.population,
            titles=self._titles,
            event_time_us=(happened_us - events.delay_us + events.shift_us) // 1000 * 1000,
            ingest_time_us=now_us,
        )

    def _corrupted(self, values: pa.BinaryArray, events: EventArrays) -> pa.BinaryArray:
        bad = Corrupted.of(events)
        if not len(bad.at):
            return values
        replaced = np.arange(len(values))
        replaced[bad.at] = len(values) + np.arange(len(bad.at))
        corrupted = self._corrupt(values.take(pa.array(bad.at)), bad.salt)
        return pa.concat_arrays([values, corrupted]).take(pa.array(replaced))
