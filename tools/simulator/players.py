"""The players: their attributes, which do not change during a run, and their personal data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tools.simulator import reference_data
from tools.simulator.text import hex_text

# Exponent of the games' popularity: of 30 games the first has a sixth of the players, the last a hundredth.
_POPULARITY_SKEW = 0.8
# Odd, so that multiplying by them permutes the 28-bit numbers: ids are in no visible order, and unique.
_GAMER_STEP, _DEVICE_STEP = 0x9E3779B, 0x85EBCA7
_MAX_SKEW_MS = 6 * 3600 * 1000
_FIRST = pa.array(["Ada", "Bram", "Chiara", "Dilnoza", "Emre", "Fatou", "Goran", "Hye-jin", "Ines", "Jonas", "Kavya"])
_LAST = pa.array(["Abernathy", "Bielak", "Castellanos", "Dimitrov", "Eriksen", "Fukuda", "Grünwald", "Haddad", "Iyer"])
_STREETS = pa.array(["Alder Row", "Brick Lane", "Canal Street", "Dove Close", "Elm Walk", "Fern Hill", "Gable End"])
_OCTETS = pa.array([str(number) for number in range(256)])
# One player in `_WRITERS` has written a text to the support.
_WRITERS = 8


@dataclass(frozen=True, slots=True)
class Naming:
    """Prefixes of the ids of players and of their devices."""

    gamer: str
    device: str


# Ids for records that go to Kafka directly.
ANONYMOUS = Naming("g", "d")
# Ids for the gateway, which replaces them by pseudonyms: no hexadecimal text contains one of them by chance.
IDENTIFYING = Naming("p", "v")


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """One row per player, in parallel arrays.

    Attributes:
        game: index of the player's game.
        platform, country, connection, experiments: indices into the reference data.
        eagerness: from 0 to 1, how early a player installs an update.
        clock_skew_us: error of the device's clock.
        first_level: the level at the start of the run.
        gamer_ids, device_ids: unique ids.
    """

    game: npt.NDArray[np.int16]
    platform: npt.NDArray[np.int8]
    country: npt.NDArray[np.int8]
    connection: npt.NDArray[np.int8]
    experiments: npt.NDArray[np.int8]
    eagerness: npt.NDArray[np.float32]
    clock_skew_us: npt.NDArray[np.int64]
    first_level: npt.NDArray[np.int32]
    gamer_ids: pa.StringArray
    device_ids: pa.StringArray


def make_population(players: int, games: int, random: np.random.Generator, names: Naming = ANONYMOUS) -> Population:
    """Draw the players; games are popular in the order of their indices."""
    popularity = 1 / np.arange(1, games + 1) ** _POPULARITY_SKEW
    return Population(
        game=pick(random, popularity, players).astype(np.int16),
        platform=pick(random, reference_data.PLATFORM_WEIGHTS, players),
        country=pick(random, reference_data.COUNTRY_WEIGHTS, players),
        connection=pick(random, reference_data.CONNECTION_WEIGHTS, players),
        experiments=pick(random, reference_data.EXPERIMENT_WEIGHTS, players),
        eagerness=random.random(players, dtype=np.float32),
        clock_skew_us=_clock_skew_us(players, random),
        first_level=random.geometric(0.06, players).astype(np.int32),
        gamer_ids=_unique_ids(names.gamer, _GAMER_STEP, players, random),
        device_ids=_unique_ids(names.device, _DEVICE_STEP, players, random),
    )


def pick(random: np.random.Generator, weights: npt.ArrayLike | Sequence[float], count: int) -> npt.NDArray[np.int8]:
    """Draw `count` indices by weight."""
    edges = np.cumsum(weights)
    numbers: npt.NDArray[np.intp] = np.searchsorted(edges, random.random(count) * edges[-1], side="right")
    return numbers.astype(np.int8)


def _clock_skew_us(players: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    skew_ms = np.clip(random.standard_cauchy(players) * 800, -_MAX_SKEW_MS, _MAX_SKEW_MS)
    return skew_ms.astype(np.int64) * 1000


def _unique_ids(prefix: str, step: int, players: int, random: np.random.Generator) -> pa.StringArray:
    numbers = (np.arange(players, dtype=np.uint64) + random.integers(1 << 28, dtype=np.uint64)) * np.uint64(step)
    rows = (numbers % np.uint64(1 << 28)).astype(">u4").view(np.uint8).reshape(players, 4)
    return hex_text(prefix, rows, digits=7)


# Indices into the `Population`.
PlayerIndices: TypeAlias = npt.NDArray[np.int64]
_PersonalColumn: TypeAlias = Callable[[Population, PlayerIndices], pa.StringArray]


def personal_column(name: str, population: Population, people: PlayerIndices) -> pa.StringArray:
    """Return a field of the contract's `PersonalData` for some players; the same player always has the same value.

    Raises:
        KeyError: the contract has a field that the simulator cannot fill.
    """
    return _MAKERS[name](population, people)


def _emails(population: Population, people: PlayerIndices) -> pa.StringArray:
    return _joined("", pc.utf8_lower(_of(_FIRST, people)), ".", _gamer_ids(population, people), "@mail.example")


def _addresses(_population: Population, people: PlayerIndices) -> pa.StringArray:
    octets = [_OCTETS.take(pa.array((people >> shift) % 256)) for shift in (16, 8, 0)]
    return _joined(".", "100", *octets)


def _names(population: Population, people: PlayerIndices) -> pa.StringArray:
    return _joined(" ", _of(_FIRST, people), _of(_LAST, people), _gamer_ids(population, people))


def _texts(population: Population, people: PlayerIndices) -> pa.StringArray:
    house = _OCTETS.take(pa.array(people % 256))
    text = _joined(
        " ", "My bag is gone. I live at", house, _of(_STREETS, people), "and sign as", _gamer_ids(population, people)
    )
    return pc.if_else(pa.array(people % _WRITERS == 0), text, "")


_MAKERS: Mapping[str, _PersonalColumn] = MappingProxyType(
    {"email": _emails, "ip_address": _addresses, "player_name": _names, "free_text": _texts}
)


def _gamer_ids(population: Population, people: PlayerIndices) -> pa.StringArray:
    return population.gamer_ids.take(pa.array(people))


def _of(words: pa.StringArray, people: PlayerIndices) -> pa.StringArray:
    return words.take(pa.array(people % len(words)))


def _joined(separator: str, *parts: pa.StringArray | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, separator)
