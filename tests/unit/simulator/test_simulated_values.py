"""Each field is set when it should be, in each version that has it, as the protobuf package reads it."""

from datetime import timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gamelake.contract.experiments import load_experiments, title_of
from gamelake.contract.games import load_games
from gamelake.contract.metrics import load_metrics
from gamelake.model.errors import ContractError
from tests.unit.simulator.builders import (
    FIRST_SCHEMA_ID,
    GAMES,
    NOW_US,
    Event,
    a_run,
    a_spec,
    decode,
    encoders,
    events,
    good_events,
)
from tools.simulator.columns import EventContext, GameTitles, record_batch
from tools.simulator.event_arrays import EVENT_NAMES
from tools.simulator.players import make_population
from tools.simulator.reference_data import COUNTRIES, CURRENCIES, EXPOSURES, PRODUCTS, UNITS_PER_DOLLAR
from tools.simulator.sessions import SessionSimulator
from tools.simulator.spec import NEWEST_VERSION
from tools.simulator.text import hex_text, uuid_text

REPOSITORY = Path(__file__).parents[3]


@cache
def _events(version: int) -> tuple[Event, ...]:
    return tuple(sent.event for sent in good_events() if sent.version == version)


def _a_scene() -> EventContext:
    spec = a_spec()
    population = make_population(spec.population, len(GAMES), np.random.default_rng(3))
    events = next(SessionSimulator(spec, population, np.random.SeedSequence(5)).blocks())
    return EventContext(
        events=events,
        population=population,
        titles=GameTitles.of(GAMES),
        event_time_us=NOW_US - events.position,
        ingest_time_us=NOW_US,
    )


@pytest.mark.parametrize("version", range(1, NEWEST_VERSION + 1))
def test_a_value_decodes_to_what_the_columns_say(version: int) -> None:
    context, encoder = _a_scene(), encoders()[version - 1]

    values = encoder.encode(context).to_pylist()

    for row, value in enumerate(values):
        assert int.from_bytes(value[1:5], "big") == FIRST_SCHEMA_ID + version - 1
        _, event = decode(value)
        assert event.event_name == EVENT_NAMES[context.events.kind[row]]
        assert event.event_time.ToMicroseconds() == context.event_time_us[row]
        assert event.ingest_time.ToMicroseconds() == NOW_US
        assert event.game_name == GAMES[context.events.game[row]]
        assert event.gamer_id == context.population.gamer_ids[int(context.events.player[row])].as_py()
        assert event.session_id == context.events.session[row].tobytes().hex()
        if version > 1:
            assert event.event_params.level == context.events.level[row]


@pytest.mark.parametrize("version", range(1, NEWEST_VERSION + 1))
def test_no_version_leaves_bytes_that_its_schema_does_not_name(version: int) -> None:
    for event in _events(version)[:500]:
        kept = type(event)()
        kept.CopyFrom(event)
        kept.DiscardUnknownFields()
        assert kept.ByteSize() == event.ByteSize()


@pytest.mark.parametrize("version", range(1, NEWEST_VERSION + 1))
def test_only_purchases_have_an_amount_and_only_finished_levels_a_score(version: int) -> None:
    for event in _events(version):
        params = event.event_params
        assert params.HasField("amount") == (event.event_name == "purchase")
        assert params.HasField("score_adjustment") == (event.event_name in {"level_completed", "level_failed"})


@pytest.mark.parametrize("version", range(2, NEWEST_VERSION + 1))
def test_a_purchase_has_product_and_price_in_the_currency_of_its_country(version: int) -> None:
    bought = [event for event in _events(version) if event.event_name == "purchase"]

    assert {event.purchase.currency for event in bought} > {"USD", "EUR", "JPY"}
    for event in bought:
        country = COUNTRIES.index(event.event_params.country)
        assert event.purchase.product_id in PRODUCTS
        assert event.purchase.quantity >= 1
        assert event.purchase.currency == CURRENCIES[country]
        assert event.purchase.price_micros == round(event.event_params.amount * UNITS_PER_DOLLAR[country] * 1_000_000)


def test_a_refund_is_of_an_earlier_order_of_the_session_at_its_price() -> None:
    orders, refunded = {}, []
    for sent in events(a_run(events=60_000, versions=NEWEST_VERSION)):
        if sent.version == NEWEST_VERSION and sent.event.event_name == "purchase":
            orders[sent.event.purchase.order_id] = sent.event.purchase
        if sent.version == NEWEST_VERSION and sent.event.event_name == "refund":
            refunded.append(sent.event.purchase)

    assert refunded
    assert all(each == orders[each.order_id] for each in refunded)
    assert len({each.order_id for each in refunded}) == len(refunded)


def test_subscriptions_start_renew_and_end_and_each_period_has_one_order() -> None:
    sent = [each.event for each in events(a_run(events=60_000, versions=NEWEST_VERSION, history=timedelta(days=2)))]
    subscribed = [each for each in sent if each.event_name.startswith("subscription_")]

    assert {each.event_name.removeprefix("subscription_") for each in subscribed} == {
        "started", "renewed", "cancelled", "in_grace"
    }  # fmt: skip
    assert 0 < len(subscribed) < len(sent) / 20
    sales = [each for each in subscribed if each.event_name in {"subscription_started", "subscription_renewed"}]
    assert {(each.purchase.product_id, each.purchase.price_micros > 0) for each in sales} == {("vip_monthly", True)}
    periods = {each.purchase.order_id: (each.gamer_id, each.purchase.paid_until.seconds) for each in sales}
    assert len(set(periods.values())) == len(periods)
    assert all(each.purchase.order_id == "" for each in subscribed if each not in sales)
    in_time = [each for each in subscribed if each.HasField("event_time")]
    assert all(0 < each.purchase.paid_until.seconds - each.event_time.seconds <= 6 * 3_600 for each in in_time)


def test_the_newest_version_says_what_ads_earn_what_players_gain_and_how_they_came() -> None:
    messages = _events(NEWEST_VERSION)

    assert all(event.ad.revenue_micros > 0 for event in messages if event.event_name == "ad_viewed")
    assert all(event.resource.change > 0 for event in messages if event.event_name == "level_completed")
    assert all(event.install.source for event in messages if event.event_name == "session_start")


def test_exposures_are_those_of_the_experiments_contract() -> None:
    contracts = REPOSITORY / "contracts"
    games, metrics = load_games(contracts / "games.yaml"), load_metrics(contracts / "metrics.yaml")
    declared = {
        (title, experiment.name, variant.name)
        for experiment in load_experiments(contracts / "experiments.yaml", games, metrics).experiments
        for title in title_of(games, experiment).match
        for variant in experiment.variants
    }

    assert {(title, name, each) for title, (name, variants) in EXPOSURES.items() for each in variants} == declared


def test_each_player_of_an_experiment_meets_one_variant_at_the_beginning_of_sessions() -> None:
    exposed = [event for event in _events(NEWEST_VERSION) if event.exposure.experiment]
    met = {(event.gamer_id, event.exposure.experiment, event.exposure.variant) for event in exposed}

    assert {event.event_name for event in exposed} == {"session_start"}
    assert {event.game_name for event in exposed} <= EXPOSURES.keys()
    assert len({each[:2] for each in met}) == len(met) > 1


def test_only_error_events_have_a_report() -> None:
    reported = [event.event_name for event in _events(3) if event.HasField("error")]

    assert set(reported) == {"error"}


def test_some_failed_responses_have_a_duration_and_others_have_none() -> None:
    reports = [event.error for event in _events(3) if event.HasField("error")]

    assert {report.HasField("response_ms") for report in reports} == {True, False}
    assert all(report.code for report in reports)


def test_ads_say_where_they_were_shown() -> None:
    for event in _events(3):
        assert ("placement" in event.attributes) == (event.event_name == "ad_viewed")


def test_some_players_are_in_experiments() -> None:
    sizes = {len(event.experiment_ids) for event in _events(2)}

    assert sizes == {0, 1, 2}


def test_a_session_says_once_which_app_it_is_of() -> None:
    for event in _events(1):
        assert bool(event.event_params.app_name) == (event.event_name == "session_start")
        assert bool(event.event_params.game_keyword) == (event.event_name == "session_start")


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ContractError, match="mood"):
        record_batch(_a_scene(), pa.schema([("mood", pa.string())]))


def test_an_id_is_a_uuid_of_version_4() -> None:
    assert uuid_text(np.full((1, 16), 255, dtype=np.uint8)).to_pylist() == ["ffffffff-ffff-4fff-bfff-ffffffffffff"]


def test_hexadecimal_text_keeps_its_last_digits() -> None:
    assert hex_text("g", np.array([[0x01, 0x23, 0xAB]], dtype=np.uint8), digits=5).to_pylist() == ["g123ab"]
