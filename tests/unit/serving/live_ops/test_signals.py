"""When a signal is given and when it is not, on counts that are made by hand."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from gamelake.serving.live_ops.signals.counts import Count, Hour
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import Sensitivity, Signal, SignalKind, fewer_by_chance, more_by_chance

GAMES = ("archery", "bingo", "castle", "dragon", "empire")
WARM = 90
START = 29_000_040  # the beginning of an hour


def a_minute(minute: int, rate: int = 600, without: Iterable[str] = (), **games: dict[str, int]) -> list[Count]:
    """Return a minute in which each game has the same, except the named ones."""
    counts = []
    for game in GAMES:
        if game not in set(without):
            usual = {"events": rate, "errors": rate // 20, "purchases": rate // 10, "bookings_micros": rate * 500_000}
            counts.append(Count(minute, game, "1.0", **(usual | games.get(game, {}))))
    return counts


def run(
    detector: Detector, minutes: int, make: Callable[[int], list[Count]] = a_minute, first: int = 0
) -> list[Signal]:
    return [signal for at in range(first, first + minutes) for signal in detector.judge(START + at, make(START + at))]


def warm() -> Detector:
    detector = Detector()
    assert run(detector, WARM) == []
    return detector


def test_a_game_that_falls_to_half_is_said_to_once_and_again_when_it_is_over() -> None:
    detector = warm()
    fallen = {"events": 300, "errors": 15, "purchases": 30, "bookings_micros": 150_000_000}

    said = run(detector, 60, lambda minute: a_minute(minute, castle=fallen), WARM)
    over = run(detector, 30, first=WARM + 60)

    (begun,) = said
    assert (begun.kind, begun.game, begun.ended) == (SignalKind.EVENTS_FALL, "castle", None)
    assert begun.noticed - (START + WARM) < 5
    (ended,) = over
    assert (ended.signal_id, ended.ended is not None) == (begun.signal_id, True)
    assert detector.lasting == []


def test_a_game_that_falls_by_a_fifth_is_no_signal() -> None:
    fallen = {"events": 480, "errors": 24, "purchases": 48, "bookings_micros": 240_000_000}

    assert run(warm(), 120, lambda minute: a_minute(minute, castle=fallen), WARM) == []


def test_what_falls_for_all_games_is_no_games_own_matter() -> None:
    assert run(warm(), 60, lambda minute: a_minute(minute, rate=120), WARM) == []


def test_minutes_without_any_event_say_nothing_and_are_not_learnt() -> None:
    detector = warm()

    assert run(detector, 200, lambda _: [], WARM) == []
    assert run(detector, 30, first=WARM + 200) == []


def test_a_stream_that_comes_back_after_a_night_finds_all_as_it_was() -> None:
    detector = warm()

    assert run(detector, 60, first=WARM + 600) == []


def test_fewer_dollars_with_as_many_purchases_are_a_fall_of_bookings() -> None:
    cheap = {"bookings_micros": 6_000_000}

    (begun,) = run(warm(), 30, lambda minute: a_minute(minute, bingo=cheap), WARM)

    assert (begun.kind, begun.game) == (SignalKind.BOOKINGS_FALL, "bingo")


def test_a_silent_game_has_no_other_signal_while_it_is_silent() -> None:
    detector = warm()

    said = run(detector, 30, lambda minute: a_minute(minute, without=["dragon"]), WARM)

    assert [signal.kind for signal in said if signal.ended is None][-1] is SignalKind.SILENT
    assert [signal.kind for signal in detector.lasting] == [SignalKind.SILENT]


def test_a_game_is_not_judged_before_it_is_known() -> None:
    detector = Detector()
    fallen = {"events": 60, "errors": 3, "purchases": 6, "bookings_micros": 30_000_000}

    assert run(detector, 40) == []
    assert run(detector, 15, lambda minute: a_minute(minute, castle=fallen), 40) == []


def test_a_level_that_stays_is_usual_after_a_while() -> None:
    detector = Detector(Sensitivity(longest=120))
    run(detector, WARM)
    fallen = {"events": 300, "errors": 15, "purchases": 30, "bookings_micros": 150_000_000}

    said = run(detector, 200, lambda minute: a_minute(minute, castle=fallen), WARM)

    assert [signal.ended is None for signal in said][:2] == [True, False]
    assert said[1].ended is not None
    assert said[1].ended - said[1].noticed == 120


@pytest.mark.parametrize(("days", "signals"), [(0, 1), (1, 1), (3, 0)], ids=["no night", "one night", "three nights"])
def test_a_game_that_sleeps_each_night_is_not_said_to_fall_once_some_nights_are_known(days: int, signals: int) -> None:
    detector = Detector()
    midnight = START // 60 + 3
    hours = [
        Hour(midnight - 24 * day + hour, game, 60 * (200 if game == "empire" and hour >= 0 else 600), 3600, 10**9)
        for day in range(1, days + 1)
        for hour in range(-12, 8)
        for game in GAMES
    ]

    def night(minute: int) -> list[Count]:
        asleep = minute >= midnight * 60
        return a_minute(minute, empire={"events": 200} if asleep else {})

    detector.recall_hours(hours)
    said = run(detector, 8 * 60, night)

    assert len([signal for signal in said if signal.ended is None]) == signals


def test_a_new_version_with_six_times_the_errors_is_named() -> None:
    detector = warm()

    def with_update(minute: int) -> list[Count]:
        return [*a_minute(minute), Count(minute, "archery", "1.1", 120, 36, 12, 0)]

    (begun,) = run(detector, 60, with_update, WARM)

    assert (begun.kind, begun.game, begun.app_version) == (SignalKind.ERRORS_RISE, "archery", "1.1")
    assert begun.noticed - (START + WARM) < 5


def test_a_new_version_with_as_many_errors_as_others_is_no_signal() -> None:
    def with_update(minute: int) -> list[Count]:
        return [*a_minute(minute), Count(minute, "archery", "1.1", 120, 6, 12, 0)]

    assert run(warm(), 120, with_update, WARM) == []


def test_an_old_version_with_many_errors_is_not_one_that_has_appeared() -> None:
    detector = Detector()

    def always(minute: int) -> list[Count]:
        return [*a_minute(minute), Count(minute, "archery", "0.9", 120, 60, 12, 0)]

    assert run(detector, 200, always) == []


def test_a_version_without_players_has_no_signal() -> None:
    detector = warm()
    run(detector, 20, lambda minute: [*a_minute(minute), Count(minute, "archery", "1.1", 120, 60, 12, 0)], WARM)

    (ended,) = run(detector, 30, first=WARM + 20)

    assert ended.ended is not None


@pytest.mark.parametrize(("observed", "expected"), [(0, 5), (3, 9), (50, 80), (10, 30)])
def test_a_bound_of_chance_never_says_more_than_chance_allows(observed: int, expected: float) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.poisson(expected, 400_000)

    fewer = float(fewer_by_chance(np.array([float(observed)]), np.array([float(expected)]))[0])
    more = more_by_chance(2 * expected - observed, expected)

    assert np.exp(-fewer) >= (drawn <= observed).mean() * 0.99
    assert np.exp(-more) >= (drawn >= 2 * expected - observed).mean() * 0.99
    assert fewer_by_chance(np.array([9.0]), np.array([5.0]))[0] == 0
    assert more_by_chance(5, 9) == 0
