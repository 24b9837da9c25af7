"""Arrow columns of the game event: one maker per field of the contract, whichever of its versions have that field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.errors import ContractError
from tools.simulator import reference_data
from tools.simulator.defects import Fate
from tools.simulator.event_arrays import EVENT_NAMES, Happening, Moments
from tools.simulator.players import Population
from tools.simulator.text import fixed_width_text, hex_digits, uuid_text

_SECOND_US = 1_000_000
_FATAL_ERROR = reference_data.ERRORS.index("out_of_memory")

_NAMES = pa.array(EVENT_NAMES)
_PLATFORMS = pa.array(reference_data.PLATFORMS)
_COUNTRIES = pa.array(reference_data.COUNTRIES)
_RELEASES = pa.array(reference_data.RELEASES)
_PRODUCTS = pa.array(reference_data.PRODUCTS)
_ERRORS = pa.array(reference_data.ERRORS)
_CURRENCY = pa.array(["USD"])
_CONNECTIONS = np.array(reference_data.CONNECTIONS, dtype=np.int32)
_PRICE_CENTS = np.array(reference_data.PRICE_CENTS, dtype=np.int64)
_EXPERIMENTS = pa.array(reference_data.EXPERIMENT_SETS, pa.list_(pa.string()))
_ATTRIBUTES = pa.array(reference_data.ATTRIBUTE_SETS, pa.map_(pa.string(), pa.string()))


@dataclass(frozen=True, slots=True)
class Titles:
    """What the games are called, by their number; the last entry is blank."""

    game_names: pa.StringArray
    keywords: pa.StringArray
    app_names: pa.StringArray

    @classmethod
    def of(cls, game_names: tuple[str, ...]) -> "Titles":
        """Name the spec's games, and behind them the unknown ones."""
        names = game_names + reference_data.UNKNOWN_GAMES
        keywords = [name.split()[-1].lower() for name in names]
        app_names = [name.replace(" ", "").lower() for name in names]
        return cls(pa.array([*names, ""]), pa.array([*keywords, ""]), pa.array([*app_names, ""]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Events with everything that their columns are made of; times are microseconds since 1970.

    `ingest_time_us` is None where the platform says it and not the sender.
    """

    moments: Moments
    population: Population
    titles: Titles
    event_time_us: npt.NDArray[np.int64]
    ingest_time_us: int | None

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "Scene":
        """Give the events that a mask names."""
        return Scene(
            moments=self.moments[rows],
            population=self.population,
            titles=self.titles,
            event_time_us=self.event_time_us[rows],
            ingest_time_us=self.ingest_time_us,
        )


Maker: TypeAlias = Callable[[Scene], pa.Array]


def record_batch(scene: Scene, schema: pa.Schema) -> pa.RecordBatch:
    """Make the columns that a version of the contract asks for.

    Raises:
        ContractError: the contract has a field that no SDK knows how to fill.
    """
    arrays = [_make(EVENT_FIELDS, field, scene) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make(makers: Mapping[str, Maker], field: pa.Field, scene: Scene) -> pa.Array:
    if field.name in _MESSAGES:
        return _message(field, scene)
    try:
        return makers[field.name](scene)
    except KeyError as error:
        raise ContractError(f"the simulator does not know the field {field.name}") from error


def _message(field: pa.Field, scene: Scene) -> pa.StructArray:
    makers, happening = _MESSAGES[field.name]
    mask = None if happening is None else pa.array(scene.moments.happening != happening)
    children = [_make(makers, child, scene) for child in field.type]
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)


def _words(values: pa.Array, numbers: npt.NDArray[np.integer]) -> pa.Array:
    return values.take(pa.array(numbers))


def _only(values: npt.NDArray[np.generic], hit: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~hit)


def _timestamps(micros: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(micros, mask=missing).view(pa.timestamp("us", tz="UTC"))


def _is(scene: Scene, *happenings: Happening) -> npt.NDArray[np.bool_]:
    return np.isin(scene.moments.happening, happenings)


def _event_time(scene: Scene) -> pa.Array:
    return _timestamps(scene.event_time_us, scene.moments.fate == Fate.NULL_TIME)


def _ingest_time(scene: Scene) -> pa.Array:
    if scene.ingest_time_us is None:
        return pa.nulls(len(scene.moments), pa.timestamp("us", tz="UTC"))
    return _timestamps(np.full(len(scene.moments), scene.ingest_time_us))


def _client_event_time(scene: Scene) -> pa.Array:
    device_us = scene.event_time_us + scene.population.clock_skew_us[scene.moments.player]
    return _timestamps(device_us // _SECOND_US * _SECOND_US)


def _context(scene: Scene) -> npt.NDArray[np.int64]:
    """Number the titles of the events that say where they come from: the SDKs say it once per session."""
    return np.where(_is(scene, Happening.SESSION_START), scene.moments.game, len(scene.titles.game_names) - 1)


def _cents(scene: Scene) -> npt.NDArray[np.int64]:
    return _PRICE_CENTS[scene.moments.product] * scene.moments.quantity


def _attributes(scene: Scene) -> pa.Array:
    placement = 1 + (scene.moments.salt % np.uint64(2)).astype(np.int8)
    numbers = np.where(_is(scene, Happening.AD_VIEWED), placement, 0)
    numbers[_is(scene, Happening.SESSION_START)] = len(reference_data.ATTRIBUTE_SETS) - 1
    return _words(_ATTRIBUTES, numbers)


def _response_ms(scene: Scene) -> pa.Array:
    from_network = np.isin(scene.moments.error, [0, reference_data.ERRORS.index("store_unavailable")])
    return _only(scene.moments.response_ms, from_network)


EVENT_PARAMS_FIELDS: Mapping[str, Maker] = {
    "game_keyword": lambda scene: _words(scene.titles.keywords, _context(scene)),
    "app_name": lambda scene: _words(scene.titles.app_names, _context(scene)),
    "score_adjustment": lambda scene: _only(
        scene.moments.score, _is(scene, Happening.LEVEL_COMPLETED, Happening.LEVEL_FAILED)
    ),
    "platform": lambda scene: _words(_PLATFORMS, scene.population.platform[scene.moments.player]),
    "app_version": lambda scene: _words(_RELEASES, scene.moments.release),
    "device_id": lambda scene: _words(scene.population.device_ids, scene.moments.player),
    "client_event_time": _client_event_time,
    "amount": lambda scene: _only(_cents(scene) / 100, _is(scene, Happening.PURCHASE)),
    "level": lambda scene: pa.array(scene.moments.level),
    "country": lambda scene: _words(_COUNTRIES, scene.population.country[scene.moments.player]),
}

PURCHASE_FIELDS: Mapping[str, Maker] = {
    "product_id": lambda scene: _words(_PRODUCTS, np.maximum(scene.moments.product, 0)),
    "currency": lambda scene: _words(_CURRENCY, np.zeros(len(scene.moments), dtype=np.int8)),
    "price_micros": lambda scene: pa.array(_cents(scene) * 10_000),
    "quantity": lambda scene: pa.array(scene.moments.quantity),
}

ERROR_FIELDS: Mapping[str, Maker] = {
    "code": lambda scene: _words(_ERRORS, np.maximum(scene.moments.error, 0)),
    "fatal": lambda scene: pa.array(scene.moments.error == _FATAL_ERROR),
    "response_ms": _response_ms,
}

EVENT_FIELDS: Mapping[str, Maker] = {
    "event_id": lambda scene: uuid_text(scene.moments.event_id),
    "event_name": lambda scene: _words(_NAMES, scene.moments.happening),
    "event_time": _event_time,
    "ingest_time": _ingest_time,
    "game_name": lambda scene: _words(scene.titles.game_names, scene.moments.game),
    "gamer_id": lambda scene: _words(scene.population.gamer_ids, scene.moments.player),
    "session_id": lambda scene: fixed_width_text(hex_digits(scene.moments.session)),
    "experiment_ids": lambda scene: _words(_EXPERIMENTS, scene.population.experiments[scene.moments.player]),
    "attributes": _attributes,
    "connection_type": lambda scene: pa.array(_CONNECTIONS[scene.population.connection[scene.moments.player]]),
}

# The messages inside the event, and on which happening they are set; None is always.
_MESSAGES: Mapping[str, tuple[Mapping[str, Maker], Happening | None]] = {
    "event_params": (EVENT_PARAMS_FIELDS, None),
    "purchase": (PURCHASE_FIELDS, Happening.PURCHASE),
    "error": (ERROR_FIELDS, Happening.ERROR),
}
