"""Arrow columns of the game event: one function per field of the contract, for all versions that have the field."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.errors import ContractError
from tools.simulator import reference_data
from tools.simulator.defects import Defect
from tools.simulator.event_arrays import EVENT_NAMES, SUBSCRIPTION_KINDS, SUBSCRIPTION_SALES, EventArrays, EventKind
from tools.simulator.players import Population
from tools.simulator.text import fixed_width_text, hex_digits, uuid_text

_SECOND_US = 1_000_000
_PERIOD_US = reference_data.SUBSCRIPTION_SECONDS * _SECOND_US
_PRICED = (EventKind.PURCHASE, EventKind.REFUND, *SUBSCRIPTION_SALES)
_FATAL_ERROR = reference_data.ERRORS.index("out_of_memory")

_NAMES = pa.array(EVENT_NAMES)
_PLATFORMS = pa.array(reference_data.PLATFORMS)
_COUNTRIES = pa.array(reference_data.COUNTRIES)
_RELEASES = pa.array(reference_data.RELEASES)
_PRODUCTS = pa.array(reference_data.PRODUCTS)
_ERRORS = pa.array(reference_data.ERRORS)
_CURRENCIES = pa.array(reference_data.CURRENCIES)
_UNITS_PER_DOLLAR = np.array(reference_data.UNITS_PER_DOLLAR)
_STORES = pa.array(reference_data.STORES)
_AD_NETWORKS = pa.array(reference_data.AD_NETWORKS)
_AD_PLACEMENTS = pa.array(["rewarded", "interstitial"])
_AD_MICROS = np.array(reference_data.AD_MICROS, dtype=np.int64)
_SOURCES, _CAMPAIGNS = (pa.array(each) for each in zip(*reference_data.INSTALLS, strict=True))
_ITEMS, _REASONS = (pa.array([each[place] for each in reference_data.RESOURCES]) for place in (0, 1))
_CHANGES = np.array([each[2] for each in reference_data.RESOURCES], dtype=np.int32)
_CONNECTIONS = np.array(reference_data.CONNECTIONS, dtype=np.int32)
_PRICE_CENTS = np.array(reference_data.PRICE_CENTS, dtype=np.int64)
_EXPERIMENTS = pa.array(reference_data.EXPERIMENT_SETS, pa.list_(pa.string()))
_FOURTHS = 4
_NOT_EXPOSED: tuple[None, Sequence[None]] = (None, (None,) * _FOURTHS)
_ATTRIBUTES = pa.array(reference_data.ATTRIBUTE_SETS, pa.map_(pa.string(), pa.string()))


@dataclass(frozen=True, slots=True)
class GameTitles:
    """Texts that name a game, by the index of the game; the last entry is empty."""

    game_names: pa.StringArray
    keywords: pa.StringArray
    app_names: pa.StringArray

    @classmethod
    def of(cls, game_names: tuple[str, ...]) -> "GameTitles":
        """Return the spec's games, followed by the unknown ones."""
        names = game_names + reference_data.UNKNOWN_GAMES
        keywords = [name.split()[-1].lower() for name in names]
        app_names = [name.replace(" ", "").lower() for name in names]
        return cls(pa.array([*names, ""]), pa.array([*keywords, ""]), pa.array([*app_names, ""]))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """Events with all data that their columns are computed from.

    Attributes:
        event_time_us: microseconds since 1970, one per event.
        ingest_time_us: microseconds since 1970; None where the platform sets the time.
    """

    events: EventArrays
    population: Population
    titles: GameTitles
    event_time_us: npt.NDArray[np.int64]
    ingest_time_us: int | None

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> "EventContext":
        """Select events by a mask."""
        return EventContext(
            events=self.events[rows],
            population=self.population,
            titles=self.titles,
            event_time_us=self.event_time_us[rows],
            ingest_time_us=self.ingest_time_us,
        )


ColumnMaker: TypeAlias = Callable[[EventContext], pa.Array]


def record_batch(context: EventContext, schema: pa.Schema) -> pa.RecordBatch:
    """Compute the columns of a schema version, in the schema's order.

    Raises:
        ContractError: the contract has a field that the simulator cannot fill.
    """
    arrays = [_make(EVENT_FIELDS, field, context) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make(makers: Mapping[str, ColumnMaker], field: pa.Field, context: EventContext) -> pa.Array:
    if field.name in _MESSAGES:
        return _message(field, context)
    try:
        return makers[field.name](context)
    except KeyError as error:
        raise ContractError(f"the simulator does not know the field {field.name}") from error


def _message(field: pa.Field, context: EventContext) -> pa.StructArray:
    makers, kinds = _MESSAGES[field.name]
    mask = None if len(kinds) == len(EventKind) else pa.array(~_is(context, *kinds))
    children = [_make(makers, child, context) for child in field.type]
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)


def _take(values: pa.Array, numbers: npt.NDArray[np.integer]) -> pa.Array:
    return values.take(pa.array(numbers))


def _only(values: npt.NDArray[np.generic], hit: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~hit)


def _timestamps(micros: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(micros, mask=missing).view(pa.timestamp("us", tz="UTC"))


def _is(context: EventContext, *kinds: EventKind) -> npt.NDArray[np.bool_]:
    return np.isin(context.events.kind, kinds)


def _event_time(context: EventContext) -> pa.Array:
    return _timestamps(context.event_time_us, context.events.defect == Defect.NULL_TIME)


def _ingest_time(context: EventContext) -> pa.Array:
    if context.ingest_time_us is None:
        return pa.nulls(len(context.events), pa.timestamp("us", tz="UTC"))
    return _timestamps(np.full(len(context.events), context.ingest_time_us))


def _client_event_time(context: EventContext) -> pa.Array:
    device_us = context.event_time_us + context.population.clock_skew_us[context.events.player]
    return _timestamps(device_us // _SECOND_US * _SECOND_US)


def _title_numbers(context: EventContext) -> npt.NDArray[np.int64]:
    """Index of each event's title; only the start of a session has one, as the SDKs send it once per session."""
    return np.where(_is(context, EventKind.SESSION_START), context.events.game, len(context.titles.game_names) - 1)


def _cents(context: EventContext) -> npt.NDArray[np.int64]:
    return _PRICE_CENTS[context.events.product] * context.events.quantity


def _attributes(context: EventContext) -> pa.Array:
    placement = 1 + _salted(context, 2)
    numbers = np.where(_is(context, EventKind.AD_VIEWED), placement, 0)
    numbers[_is(context, EventKind.SESSION_START)] = len(reference_data.ATTRIBUTE_SETS) - 1
    return _take(_ATTRIBUTES, numbers)


def _country(context: EventContext) -> npt.NDArray[np.int8]:
    return context.population.country[context.events.player]


def _price_micros(context: EventContext) -> pa.Array:
    dollars = np.where(_is(context, *_PRICED), _cents(context) / 100, 0)
    return pa.array(np.rint(dollars * _UNITS_PER_DOLLAR[_country(context)] * 1_000_000).astype(np.int64))


def _order_ids(context: EventContext) -> pa.Array:
    """Return the session and the number of a purchase, or the player and the period of a subscription."""
    numbers = pa.array(context.events.order).cast(pa.string())
    bought = pc.binary_join_element_wise(fixed_width_text(hex_digits(context.events.session)), numbers, "-")
    periods = pa.array(_paid_until_us(context) // _SECOND_US).cast(pa.string())
    players = _take(context.population.gamer_ids, context.events.player)
    subscribed = pc.binary_join_element_wise(players, periods, "-")
    orders = pc.if_else(pa.array(_is(context, *SUBSCRIPTION_SALES)), subscribed, bought)
    return pc.if_else(pa.array(_is(context, *_PRICED)), orders, "")


def _paid_until_us(context: EventContext) -> npt.NDArray[np.int64]:
    """Return the end of the player's paid period at each event; players' periods begin at different seconds."""
    begins_us = context.events.player * 97_003 * _SECOND_US % _PERIOD_US
    return ((context.event_time_us + begins_us) // _PERIOD_US + 1) * _PERIOD_US - begins_us


def _paid_until(context: EventContext) -> pa.Array:
    return _timestamps(_paid_until_us(context), ~_is(context, *SUBSCRIPTION_KINDS))


def _salted(context: EventContext, choices: int) -> npt.NDArray[np.int64]:
    return (context.events.salt % np.uint64(choices)).astype(np.int64)


def _resource(context: EventContext) -> npt.NDArray[np.int64]:
    """Return the resource that each event changes, as an index into `RESOURCES`."""
    return np.select([_is(context, EventKind.LEVEL_STARTED), _is(context, EventKind.PURCHASE)], [1, 2], 0)


def _load_ms(context: EventContext) -> pa.Array:
    return _only(400 + _salted(context, 7_000), _is(context, EventKind.SESSION_START, EventKind.LEVEL_STARTED))


def _experiments(context: EventContext) -> pa.Array:
    return _take(_EXPERIMENTS, context.population.experiments[context.events.player])


def _exposed(context: EventContext) -> npt.NDArray[np.bool_]:
    return context.population.experiments[context.events.player] > 0


def _experiment(context: EventContext) -> pa.Array:
    """Return the experiment of each event's game; null for players who are in no experiment."""
    titles = context.titles.game_names.to_pylist()
    names = pa.array([reference_data.EXPOSURES.get(title, _NOT_EXPOSED)[0] for title in titles], pa.string())
    return names.take(pa.array(context.events.game, mask=~_exposed(context)))


def _variant(context: EventContext) -> pa.Array:
    """Return the player's variant in the experiment of each event's game."""
    titles = context.titles.game_names.to_pylist()
    variants = [each for title in titles for each in reference_data.EXPOSURES.get(title, _NOT_EXPOSED)[1]]
    numbers = context.events.game.astype(np.int64) * _FOURTHS + context.events.player % _FOURTHS
    return pa.array(variants, pa.string()).take(pa.array(numbers, mask=~_exposed(context)))


def _response_ms(context: EventContext) -> pa.Array:
    from_network = np.isin(context.events.error, [0, reference_data.ERRORS.index("store_unavailable")])
    return _only(context.events.response_ms, from_network)


EVENT_PARAMS_FIELDS: Mapping[str, ColumnMaker] = {
    "game_keyword": lambda context: _take(context.titles.keywords, _title_numbers(context)),
    "app_name": lambda context: _take(context.titles.app_names, _title_numbers(context)),
    "score_adjustment": lambda context: _only(
        context.events.score, _is(context, EventKind.LEVEL_COMPLETED, EventKind.LEVEL_FAILED)
    ),
    "platform": lambda context: _take(_PLATFORMS, context.population.platform[context.events.player]),
    "app_version": lambda context: _take(_RELEASES, context.events.release),
    "device_id": lambda context: _take(context.population.device_ids, context.events.player),
    "client_event_time": _client_event_time,
    "amount": lambda context: _only(_cents(context) / 100, _is(context, EventKind.PURCHASE)),
    "level": lambda context: pa.array(context.events.level),
    "country": lambda context: _take(_COUNTRIES, _country(context)),
}

PURCHASE_FIELDS: Mapping[str, ColumnMaker] = {
    "product_id": lambda context: _take(_PRODUCTS, np.maximum(context.events.product, 0)),
    "currency": lambda context: _take(_CURRENCIES, _country(context)),
    "price_micros": _price_micros,
    "quantity": lambda context: pa.array(context.events.quantity),
    "store": lambda context: _take(_STORES, context.population.platform[context.events.player]),
    "order_id": _order_ids,
    "paid_until": _paid_until,
}

AD_FIELDS: Mapping[str, ColumnMaker] = {
    "network": lambda context: _take(_AD_NETWORKS, _salted(context, len(_AD_NETWORKS))),
    "placement": lambda context: _take(_AD_PLACEMENTS, _salted(context, 2)),
    "currency": lambda context: pa.repeat("USD", len(context.events)),
    "revenue_micros": lambda context: pa.array(_AD_MICROS[_salted(context, len(_AD_MICROS))]),
}

RESOURCE_FIELDS: Mapping[str, ColumnMaker] = {
    "item": lambda context: _take(_ITEMS, _resource(context)),
    "change": lambda context: pa.array(_CHANGES[_resource(context)].astype(np.int64)),
    "balance": lambda context: pa.nulls(len(context.events), pa.int64()),
    "reason": lambda context: _take(_REASONS, _resource(context)),
}

EXPOSURE_FIELDS: Mapping[str, ColumnMaker] = {
    "experiment": _experiment,
    "variant": _variant,
}

INSTALL_FIELDS: Mapping[str, ColumnMaker] = {
    "source": lambda context: _take(_SOURCES, context.events.player % len(_SOURCES)),
    "campaign": lambda context: _take(_CAMPAIGNS, context.events.player % len(_CAMPAIGNS)),
}

ERROR_FIELDS: Mapping[str, ColumnMaker] = {
    "code": lambda context: _take(_ERRORS, np.maximum(context.events.error, 0)),
    "fatal": lambda context: pa.array(context.events.error == _FATAL_ERROR),
    "response_ms": _response_ms,
}

EVENT_FIELDS: Mapping[str, ColumnMaker] = {
    "event_id": lambda context: uuid_text(context.events.event_id),
    "event_name": lambda context: _take(_NAMES, context.events.kind),
    "event_time": _event_time,
    "ingest_time": _ingest_time,
    "game_name": lambda context: _take(context.titles.game_names, context.events.game),
    "gamer_id": lambda context: _take(context.population.gamer_ids, context.events.player),
    "session_id": lambda context: fixed_width_text(hex_digits(context.events.session)),
    "experiment_ids": _experiments,
    "attributes": _attributes,
    "load_ms": _load_ms,
    "connection_type": lambda context: pa.array(_CONNECTIONS[context.population.connection[context.events.player]]),
}

# The nested messages of the event, and the kinds of events that set them.
_MESSAGES: Mapping[str, tuple[Mapping[str, ColumnMaker], Sequence[EventKind]]] = {
    "event_params": (EVENT_PARAMS_FIELDS, tuple(EventKind)),
    "purchase": (PURCHASE_FIELDS, (EventKind.PURCHASE, EventKind.REFUND, *SUBSCRIPTION_KINDS)),
    "error": (ERROR_FIELDS, (EventKind.ERROR,)),
    "ad": (AD_FIELDS, (EventKind.AD_VIEWED,)),
    "resource": (RESOURCE_FIELDS, (EventKind.LEVEL_STARTED, EventKind.LEVEL_COMPLETED, EventKind.PURCHASE)),
    "exposure": (EXPOSURE_FIELDS, (EventKind.SESSION_START,)),
    "install": (INSTALL_FIELDS, (EventKind.SESSION_START,)),
}
