"""A player's state: what counts, what leaves the hour, and that it does not matter how events come in batches."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gamelake.serving.live_ops.states.memory import PlayerRuns
from gamelake.serving.live_ops.states.players import HOUR, STATE_SCHEMA, blank, share_of
from tests.unit.properties import examples
from tests.unit.serving.live_ops.player_events import MINUTE, PlayerEvent, Players, numbered

NOON = 720 * MINUTE


def test_a_player_who_was_never_seen_has_a_state_after_the_first_event() -> None:
    players = Players()

    players.take(PlayerEvent(at=NOON, session=7, level=3, platform="ios"))

    state = players.state()
    assert (state["game"], state["gamer_id"], state["level"], state["platform"]) == ("kart", "g1", 3, "ios")
    assert (state["first_seen"], state["last_seen"], state["last_purchase"], state["sessions"]) == (NOON, NOON, 0, 1)


def test_spend_of_the_last_hour_falls_when_a_purchase_is_an_hour_old_though_the_player_does_nothing() -> None:
    players = Players()
    players.take(PlayerEvent(at=NOON, micros=5, event=1), PlayerEvent(at=NOON + 30 * MINUTE, micros=7, event=2))
    assert players.state()["spend_last_hour_micros"] == 12

    changed = players.take(PlayerEvent(key=2, at=NOON + HOUR))

    assert changed["key"].to_pylist() == [1, 2]
    assert (players.state()["spend_last_hour_micros"], players.state()["purchases_last_hour"]) == (7, 1)
    assert (players.state()["bookings_micros"], players.state()["purchases"]) == (12, 2)


def test_a_purchase_that_is_sent_twice_counts_once_in_one_batch_and_in_two() -> None:
    players = Players()

    players.take(*numbered(PlayerEvent(micros=5, event=1), PlayerEvent(micros=5, event=1)))
    players.take(PlayerEvent(micros=5, event=1))

    assert (players.state()["purchases"], players.state()["bookings_micros"]) == (1, 5)


def test_a_purchase_that_comes_hours_late_is_in_no_last_hour_and_yet_counts() -> None:
    players = Players()
    players.take(PlayerEvent(key=2, at=NOON))

    players.take(PlayerEvent(at=NOON - 2 * HOUR, micros=5, event=1))

    assert players.state()["spend_last_hour_micros"] == 0
    assert (players.state()["bookings_micros"], players.state()["last_purchase"]) == (5, NOON - 2 * HOUR)


def test_a_session_that_is_reported_twice_is_one() -> None:
    players = Players()

    players.take(*numbered(PlayerEvent(session=7), PlayerEvent(session=7), PlayerEvent(session=8)))
    players.take(PlayerEvent(session=8))

    assert players.state()["sessions"] == 2


def test_what_was_said_last_by_the_events_clocks_counts_and_silence_says_nothing() -> None:
    players = Players()
    players.take(PlayerEvent(at=NOON, level=5, app_version="2.0", country="DE"))

    players.take(
        PlayerEvent(at=NOON - MINUTE, level=4, app_version="1.0"), PlayerEvent(at=NOON + MINUTE, platform="web")
    )

    state = players.state()
    assert (state["level"], state["app_version"], state["country"], state["platform"]) == (5, "2.0", "DE", "web")


def test_a_refund_lowers_what_was_spent() -> None:
    players = Players()

    players.take(*numbered(PlayerEvent(micros=5, event=1), PlayerEvent(micros=-5, event=2)))

    assert (players.state()["bookings_micros"], players.state()["spend_last_hour_micros"]) == (0, 0)


_PLAYER_EVENTS = st.lists(
    st.builds(
        PlayerEvent,
        key=st.integers(1, 4),
        at=st.integers(NOON, NOON + 3 * HOUR),
        micros=st.none() | st.integers(-10, 1_000),
        level=st.none() | st.integers(1, 9),
        platform=st.sampled_from([None, "ios", "web"]),
    ),
    max_size=30,
)


def _given(player_events: Sequence[PlayerEvent]) -> list[PlayerEvent]:
    """In the order of time, as a partition has them, each purchase once."""
    in_time = sorted(player_events, key=lambda each: each.at)
    return [
        PlayerEvent(**{**each.__dict__, "offset": offset, "event": offset + 1}) for offset, each in enumerate(in_time)
    ]


@examples(60)
@given(_PLAYER_EVENTS, st.lists(st.integers(0, 30), max_size=4))
def test_it_does_not_matter_how_events_come_in_batches(player_events: list[PlayerEvent], cuts: list[int]) -> None:
    reported = _given(player_events)
    edges = [0, *sorted(min(cut, len(reported)) for cut in cuts), len(reported)]
    at_once, in_parts = Players(), Players()

    at_once.take(*reported)
    for start, stop in pairwise(edges):
        in_parts.take(*reported[start:stop])

    assert in_parts.states() == at_once.states()


@examples(60)
@given(_PLAYER_EVENTS)
def test_the_last_hour_is_what_all_purchases_give(player_events: list[PlayerEvent]) -> None:
    reported = _given(player_events)
    players = Players()

    for each in reported:
        players.take(each)

    now = max((each.at for each in reported), default=0)
    for key in {each.key for each in reported}:
        recent = [
            each.micros for each in reported if each.key == key and each.micros is not None and each.at > now - HOUR
        ]
        assert players.state(key)["spend_last_hour_micros"] == sum(recent)
        assert players.state(key)["purchases_last_hour"] == len(recent)


@examples(50)
@given(st.lists(st.dictionaries(st.integers(0, 40), st.integers(0, 9), max_size=12), max_size=20))
def test_of_states_that_came_one_after_the_other_the_last_counts(batches: list[dict[int, int]]) -> None:
    runs, expected = PlayerRuns(), dict[int, int]()

    for batch in batches:
        states = blank(np.array(list(batch), np.uint64))
        sessions = pa.array(list(batch.values()), pa.int64())
        runs.add(states.set_column(states.schema.get_field_index("sessions"), "sessions", sessions))
        expected |= batch

    asked = np.arange(50, dtype=np.uint64)
    found = runs.find(asked)
    assert dict(zip(found["key"].to_pylist(), found["sessions"].to_pylist(), strict=True)) == {
        key: expected.get(key, 0) for key in range(50)
    }
    assert found.schema == STATE_SCHEMA
    assert dict(zip(*(runs.all()[name].to_pylist() for name in ("key", "sessions")), strict=True)) == expected


def test_each_player_is_in_one_share() -> None:
    keys = np.random.default_rng(1).integers(0, 2**63, 10_000).astype(np.uint64)

    for shares in (1, 2, 3, 32):
        assert set(np.unique(share_of(keys, shares))) == set(range(shares))
