"""Who the players are: what a game knows of them, and the platform must not; the same for the same player."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tools.simulator.players import Population

_FIRST = pa.array(["Ada", "Bram", "Chiara", "Dilnoza", "Emre", "Fatou", "Goran", "Hye-jin", "Ines", "Jonas", "Kavya"])
_LAST = pa.array(["Abernathy", "Bielak", "Castellanos", "Dimitrov", "Eriksen", "Fukuda", "Grünwald", "Haddad", "Iyer"])
_STREETS = pa.array(["Alder Row", "Brick Lane", "Canal Street", "Dove Close", "Elm Walk", "Fern Hill", "Gable End"])
_OCTETS = pa.array([str(number) for number in range(256)])
# One in so many players writes to the support, about one thing.
_WRITERS = 8

People = npt.NDArray[np.int64]
_Maker = Callable[[Population, People], pa.StringArray]


def personal_column(name: str, population: Population, people: People) -> pa.StringArray:
    """What a field of the contract's `PersonalData` says of each of some players, by their numbers.

    Raises:
        KeyError: the contract has a field that no game knows how to fill.
    """
    return _MAKERS[name](population, people)


def _emails(population: Population, people: People) -> pa.StringArray:
    return _joined("", pc.utf8_lower(_of(_FIRST, people)), ".", _gamer_ids(population, people), "@mail.example")


def _addresses(_population: Population, people: People) -> pa.StringArray:
    octets = [_OCTETS.take(pa.array((people >> shift) % 256)) for shift in (16, 8, 0)]
    return _joined(".", "100", *octets)


def _names(population: Population, people: People) -> pa.StringArray:
    return _joined(" ", _of(_FIRST, people), _of(_LAST, people), _gamer_ids(population, people))


def _texts(population: Population, people: People) -> pa.StringArray:
    house = _OCTETS.take(pa.array(people % 256))
    text = _joined(
        " ", "My bag is gone. I live at", house, _of(_STREETS, people), "and sign as", _gamer_ids(population, people)
    )
    return pc.if_else(pa.array(people % _WRITERS == 0), text, "")


_MAKERS: Mapping[str, _Maker] = MappingProxyType(
    {"email": _emails, "ip_address": _addresses, "player_name": _names, "free_text": _texts}
)


def _gamer_ids(population: Population, people: People) -> pa.StringArray:
    return population.gamer_ids.take(pa.array(people))


def _of(words: pa.StringArray, people: People) -> pa.StringArray:
    return words.take(pa.array(people % len(words)))


def _joined(separator: str, *parts: pa.StringArray | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, separator)
