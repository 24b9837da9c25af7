"""What the detector says of days that the simulator plays: nothing of quiet ones, and soon what went wrong."""

from functools import cache

import pytest

from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import Signal, SignalKind
from tests.unit.serving.live_ops.traffic import Said, clock, judged, minutes

EVENTS = 3_000_000
INCIDENTS = (
    "crashes/4.4.0/10:00/23:59",
    "broken_purchases/Archery Duel/14:00/15:00",
    "silence/Castle Clash Saga/18:00/18:30",
)


@cache
def troubled() -> list[Said]:
    return judged(minutes(4, EVENTS, incidents=INCIDENTS))


def begun(said: list[Said], kind: SignalKind, game: str) -> list[Said]:
    return [each for each in said if each.signal.ended is None and each.signal.subject[:2] == (kind, game)]


def ended(said: list[Said], kind: SignalKind, game: str) -> list[Said]:
    return [each for each in said if each.signal.ended is not None and each.signal.subject[:2] == (kind, game)]


@pytest.mark.parametrize(
    ("seed", "events"),
    [pytest.param(1, 1_000_000, id="lively", marks=pytest.mark.slow), pytest.param(2, 300_000, id="small")],
)
def test_nothing_is_said_of_a_quiet_day(seed: int, events: int) -> None:
    assert judged(minutes(seed, events)) == []


def test_a_patch_that_breaks_purchases_at_two_is_found_within_five_minutes_and_said_once() -> None:
    said = troubled()

    (found,) = begun(said, SignalKind.BOOKINGS_FALL, "archery_duel")
    (over,) = ended(said, SignalKind.BOOKINGS_FALL, "archery_duel")
    assert clock(14) <= found.at < clock(14, 5)
    assert clock(15) <= over.at < clock(15, 10)
    assert over.signal.signal_id == found.signal.signal_id


def test_a_silent_game_is_found_within_five_minutes_as_one_incident() -> None:
    said = troubled()

    (found,) = begun(said, SignalKind.SILENT, "castle_clash_saga")
    (over,) = ended(said, SignalKind.SILENT, "castle_clash_saga")
    assert clock(18) <= found.at < clock(18, 5)
    assert clock(18, 30) <= over.at < clock(18, 35)
    # The fall that was noticed while the silence was young is over when the silence is said.
    falls = [*begun(said, SignalKind.EVENTS_FALL, "castle_clash_saga")]
    assert len(falls) == len(ended(said, SignalKind.EVENTS_FALL, "castle_clash_saga")) <= 1
    assert begun(said, SignalKind.BOOKINGS_FALL, "castle_clash_saga") == []


def test_a_version_that_crashes_is_found_soon_after_enough_players_have_it() -> None:
    run = minutes(4, EVENTS, incidents=INCIDENTS)
    said = troubled()

    (found, *again) = begun(said, SignalKind.ERRORS_RISE, "archery_duel")
    played = [
        (minute, count.events)
        for minute, counts in run
        for count in counts
        if count.game == "archery_duel" and count.app_version == "4.4.0"
    ]
    before = sum(events for minute, events in played if minute < found.signal.begun)
    assert found.signal.app_version == "4.4.0"
    assert found.signal.noticed - found.signal.begun <= 5 or before < 50
    assert again == []
    assert {each.signal.app_version for each in said if each.signal.kind is SignalKind.ERRORS_RISE} == {"4.4.0"}


def test_nothing_else_is_said_of_games_with_nothing_but_the_version_that_crashes() -> None:
    said = troubled()

    others = {each.signal.subject[:2] for each in said if each.signal.kind is not SignalKind.ERRORS_RISE}
    assert {game for _, game in others} == {"archery_duel", "castle_clash_saga"}


def test_a_detector_that_recalls_goes_on_as_if_it_had_never_stopped() -> None:
    run = minutes(4, EVENTS, incidents=INCIDENTS)
    whole = troubled()
    # In the middle of the broken purchases.
    stop = next(at for at, (minute, _) in enumerate(run) if minute == whole_minute(14, 20, run))
    changes: dict[int, list[Signal]] = {}
    for each in whole:
        signal = each.signal
        changes.setdefault(signal.noticed if signal.ended is None else signal.ended, []).append(signal)

    detector = Detector()
    for minute, counts in run[:stop]:
        detector.recall(minute, counts, changes.get(minute, []))
    went_on = judged(run[stop:], detector)

    assert went_on == [each for each in whole if each.at >= clock(14, 20)]


def whole_minute(hours: int, past: int, run: tuple[tuple[int, object], ...]) -> int:
    """A time of the last day as the run counts minutes."""
    return run[-1][0] + 1 - 24 * 60 + clock(hours, past)
