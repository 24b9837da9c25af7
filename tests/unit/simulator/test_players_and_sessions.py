"""Sequences of events are consistent: sessions, levels, players and times."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import timedelta

from tests.unit.simulator.builders import GAMES, NOW_US, Event, Sent, a_run, events, good_events
from tools.simulator.reference_data import COUNTRIES, PLATFORMS, RELEASES

_HOUR_US = 3600 * 1_000_000


def _by_session(sent: Iterable[Sent]) -> dict[str, list[Event]]:
    sessions: dict[str, list[Event]] = defaultdict(list)
    for each in sent:
        sessions[each.event.session_id].append(each.event)
    return sessions


def test_every_session_begins_with_its_start_and_nothing_follows_its_end() -> None:
    for session in _by_session(good_events()).values():
        names = [event.event_name for event in session]
        assert names[0] == "session_start"
        assert names.count("session_start") == 1
        assert "session_end" not in names[:-1]


def test_most_sessions_end() -> None:
    sessions = _by_session(events(a_run(events=12_000, players=800))).values()

    assert sum(session[-1].event_name == "session_end" for session in sessions) > 0.8 * len(sessions)


def test_a_level_ends_only_after_it_was_started() -> None:
    for session in _by_session(good_events()).values():
        steps = [event.event_name for event in session if event.event_name.startswith("level_")]
        assert all(step == "level_started" for step in steps[::2])
        assert all(step in {"level_completed", "level_failed"} for step in steps[1::2])


def test_time_does_not_run_backwards_in_a_session() -> None:
    for session in _by_session(good_events()).values():
        times = [event.event_time.ToMicroseconds() for event in session]
        assert times == sorted(times)


def test_a_players_sessions_follow_one_another() -> None:
    order: dict[str, list[str]] = defaultdict(list)
    for sent in events(a_run(players=400, events=12_000)):
        sessions = order[sent.key]
        if not sessions or sessions[-1] != sent.event.session_id:
            sessions.append(sent.event.session_id)

    assert max(map(len, order.values())) > 2
    assert all(len(sessions) == len(set(sessions)) for sessions in order.values())


def test_a_player_keeps_game_device_platform_and_country() -> None:
    lives = defaultdict(set)
    for sent in events(a_run(players=400)):
        params = sent.event.event_params
        country = params.country if sent.version > 1 else None
        lives[sent.key].add((sent.event.game_name, params.device_id, params.platform, country))

    for life in lives.values():
        assert len({each[:3] for each in life}) == 1
        assert len({country for *_, country in life if country}) <= 1


def test_a_player_never_goes_back_to_an_older_app_or_level() -> None:
    releases, levels = defaultdict(list), defaultdict(list)
    for sent in events(a_run(players=400, events=12_000)):
        releases[sent.key].append(RELEASES.index(sent.event.event_params.app_version))
        if sent.version > 1:
            levels[sent.key].append(sent.event.event_params.level)

    assert all(history == sorted(history) for history in (*releases.values(), *levels.values()))
    assert any(len(set(history)) > 1 for history in releases.values())
    assert any(len(set(history)) > 1 for history in levels.values())


def test_players_have_devices_of_their_own() -> None:
    devices = {sent.key: sent.event.event_params.device_id for sent in good_events()}

    assert len(set(devices.values())) == len(devices) > 500


def test_the_first_games_are_the_most_popular() -> None:
    counts = Counter(sent.event.game_name for sent in good_events())

    assert [name for name, _ in counts.most_common()] == list(GAMES)


def test_platforms_and_countries_come_from_the_reference_data() -> None:
    params = [sent.event.event_params for sent in good_events() if sent.version > 1]

    assert {each.platform for each in params} == set(PLATFORMS)
    assert {each.country for each in params} == set(COUNTRIES)


def test_the_events_of_a_run_lie_in_its_history() -> None:
    times = [sent.event.event_time.ToMicroseconds() for sent in events(a_run(history=timedelta(hours=24)))]

    assert max(times) <= NOW_US
    assert min(times) > NOW_US - 25 * _HOUR_US
    assert max(times) - min(times) > 23 * _HOUR_US


def test_evenings_are_busier_than_nights() -> None:
    hours = Counter(
        sent.event.event_time.ToDatetime().hour for sent in events(a_run(history=timedelta(hours=24), players=400))
    )

    assert hours[19] > 2 * hours[7]


def test_without_history_events_happen_within_the_devices_delay() -> None:
    for sent in events(a_run(history=timedelta(0))):
        assert 0 <= NOW_US - sent.event.event_time.ToMicroseconds() <= 120_001_000
        assert sent.event.ingest_time.ToMicroseconds() == NOW_US
