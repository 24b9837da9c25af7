"""A run is reproducible, and its records are what Kafka's readers expect."""

from datetime import timedelta

import pytest

from gamelake.model.errors import SettingsError
from gamelake.schemas.framing import frame_header
from tests.unit.simulator.builders import (
    FIRST_SCHEMA_ID,
    NOW_US,
    a_run,
    a_spec,
    decode,
    encoders,
    events,
    good_events,
    records,
    records_of,
)
from tools.simulator.spec import NEWEST_VERSION, Shares
from tools.simulator.traffic import TrafficGenerator


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert records(a_run(seed=11, shares=Shares())) == records(a_run(seed=11, shares=Shares()))


def test_another_seed_gives_other_events() -> None:
    one, other = ({sent.event.event_id for sent in events(a_run(seed=seed))} for seed in (1, 2))

    assert not one & other


def test_small_batches_have_the_same_records_as_large_ones() -> None:
    small = [record for batch in a_run(shares=Shares()).batches(most_events=97) for record in records_of(batch)]

    assert sorted(small) == sorted(records(a_run(shares=Shares())))


def test_a_batch_gets_its_timestamps_when_it_is_made() -> None:
    ticks = iter(range(NOW_US, NOW_US + 10**9, 1_000_000))
    traffic = TrafficGenerator(a_spec(), encoders(), clock=lambda: next(ticks))

    stamps = [decode(batch.values[0].as_py())[1].ingest_time.ToMicroseconds() for batch in traffic.batches(1_000)]

    assert stamps == sorted(set(stamps))
    assert len(stamps) >= 6


def test_a_run_has_exactly_as_many_events_as_it_was_asked_for() -> None:
    ids = [sent.event.event_id for sent in events(a_run(events=5_432))]

    assert len(ids) == len(set(ids)) == 5_432


def test_a_value_begins_with_the_confluent_frame_of_its_version() -> None:
    values = [value for _, value in records(a_run())]

    headers = {frame_header(FIRST_SCHEMA_ID + version) for version in range(NEWEST_VERSION)}
    assert {value[:6] for value in values} == headers
    assert frame_header(0x01020304) == b"\x00\x01\x02\x03\x04\x00"


def test_the_key_is_the_player() -> None:
    assert all(sent.key == sent.event.gamer_id for sent in good_events())


def test_no_batch_has_two_events_of_one_player() -> None:
    for batch in a_run().batches():
        keys = batch.keys.to_pylist()
        assert len(keys) == len(set(keys))


def test_a_run_of_one_version_uses_no_other() -> None:
    assert {sent.version for sent in events(a_run(versions=1))} == {1}


def test_the_versions_are_mixed_and_the_newest_gains() -> None:
    versions = [sent.version for sent in good_events()]

    early, late = versions[:1500], versions[-1500:]
    assert set(early) == set(range(1, NEWEST_VERSION + 1))
    assert late.count(NEWEST_VERSION) > early.count(NEWEST_VERSION)


def test_an_event_takes_about_160_bytes() -> None:
    values = [value for _, value in records(a_run())]

    assert 150 < sum(map(len, values)) / len(values) < 185


def test_a_batch_knows_the_size_of_its_values() -> None:
    for batch in a_run(shares=Shares()).batches():
        assert batch.value_bytes == sum(map(len, batch.values.to_pylist()))


@pytest.mark.parametrize(
    "changes", [{"game_names": ()}, {"events": 0}, {"versions": 0}, {"players": 0}, {"history": timedelta(seconds=-1)}]
)
def test_a_run_without_games_events_or_players_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        a_spec(**changes)


def test_a_single_player_can_play_alone() -> None:
    assert len({sent.key for sent in events(a_run(players=1, events=60))}) == 1


def test_a_version_without_an_encoder_is_refused() -> None:
    with pytest.raises(SettingsError, match=f"{NEWEST_VERSION} versions"):
        TrafficGenerator(a_spec(), encoders(2))


def test_small_runs_have_few_players_so_that_sessions_are_long_enough() -> None:
    names = [sent.event.event_name for sent in events(a_run(players=None, events=3_000))]

    assert names.count("session_start") < 0.2 * len(names)
    assert a_spec(players=None, events=100_000_000).population == 400_000
