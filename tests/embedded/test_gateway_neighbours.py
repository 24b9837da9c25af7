"""The gateway accepts a body's good events whatever else it contains, whether it knows their players or not."""

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.events.validation import JSON, PROTOBUF
from services.sdk.batches import delimited
from tests.embedded.effort import fuzzing
from tests.embedded.fuzzed_requests import as_protobuf
from tests.embedded.gateway import Gateway, Reply, body_of, events
from tests.embedded.topic_records import ids_in
from tests.unit.gateway.damaged_events import damaged_message, damaged_text, joined
from tools.embedded import EmbeddedKafka


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service with a cache of one player: all others are new to it each time."""
    return open_gateway(INGEST_PLAYER_CACHE_BYTES="1024")


def a_new_player() -> str:
    return f"player-{uuid.uuid4().hex}"


def body_with(wrong: bytes, good: Sequence[dict[str, object]]) -> bytes:
    texts = [json.dumps(event).encode() for event in good]
    return joined(JSON, [texts[0], wrong, *texts[1:]])


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"event_params": {"level": "7"}}, "wrong_type"),
        ({"event_params": {"level": 2**40}}, "wrong_type"),
        ({"attributes": {"a": 1}}, "wrong_type"),
        ({"event_time": {"seconds": 1, "nanos": 0}}, "wrong_type"),
        ({"nothing_of_the_contract": 1}, "unknown_field"),
        ({"event_id": "no id"}, "no_event_id"),
        ({"event_params": {"amount": float("nan")}}, "malformed"),
        ({"session_id": "half of a smile \ud83d"}, "malformed"),
    ],
)
def test_a_wrong_event_of_a_new_player_costs_none_of_the_players_good_ones(
    wrong: dict[str, object], reason: str, gateway: Gateway, kafka: EmbeddedKafka
) -> None:
    player = a_new_player()
    for _ in ("the player is new", "the player is known"):
        good = events(3, gamer_id=player, personal={"email": "new@example.org"})
        (event,) = events(1, gamer_id=player, **wrong)

        result = gateway.send(body_with(json.dumps(event).encode(), good)).result

        assert result.accepted == 3
        assert [(each["index"], each["reason"]) for each in result.rejected] == [(1, reason)]
        assert {str(event["event_id"]) for event in good} <= set(ids_in(kafka, gateway.topic))


def test_a_broken_message_of_a_new_player_costs_none_of_the_players_good_ones(gateway: Gateway) -> None:
    good = as_protobuf(events(3, gamer_id=a_new_player()))

    result = gateway.send(delimited(b"\xff\xff") + good + delimited(b"\x0a"), content_type=PROTOBUF).result

    assert result.accepted == 3
    assert [(each["index"], each["reason"]) for each in result.rejected] == [(0, "malformed"), (4, "malformed")]


def test_after_a_restart_which_forgets_all_players_good_events_are_accepted(gateway: Gateway) -> None:
    wrong, players = b'{"event_time":1}', [a_new_player() for _ in range(3)]

    def send() -> Reply:
        return gateway.send(body_with(wrong, [events(1, gamer_id=player)[0] for player in players]))

    assert send().result.accepted == 3
    gateway.process.stop()
    gateway.restart()
    assert send().result.accepted == 3


def results(reply: Reply, count: int) -> list[tuple[Any, Any]]:
    """Return the reason and field of each event's rejection; both are empty for an accepted event."""
    rejected = {each["index"]: (each["reason"], each.get("field", "")) for each in reply.result.rejected}
    assert reply.result.accepted == count - len(rejected)
    return [rejected.get(index, ("", "")) for index in range(count)]


def test_each_event_of_a_body_is_accepted_or_rejected_as_it_is_alone(gateway: Gateway) -> None:
    players = st.sampled_from(["ann", "bob", "çelik", "dee"])

    @fuzzing(60)
    @given(
        st.tuples(st.just(JSON), st.lists(damaged_text(players), min_size=1, max_size=5))
        | st.tuples(st.just(PROTOBUF), st.lists(damaged_message(players), min_size=1, max_size=5))
    )
    def send(body: tuple[str, Sequence[bytes]]) -> None:
        content_type, together = body

        def results_of(*some: bytes) -> list[tuple[Any, Any]]:
            return results(gateway.send(joined(content_type, some), content_type=content_type), len(some))

        alone = [result for event in together for result in results_of(event)]
        assert results_of(*together) == alone

    send()
    assert b"Traceback" not in gateway.log()
    assert gateway.send(body_of(events(1))).result.accepted == 1
