"""Columns give the same records as events one by one, or leave a batch to be prepared one by one."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.privacy.vault.secrecy import PlayerKey
from gamelake.schemas.framing import HEADER_BYTES
from services.gateway.errors import Reason
from services.gateway.events.preparation import BatchPreparer, PreparedBatch, UnknownPlayers
from services.gateway.events.validation import JSON, PROTOBUF, EventBatch
from services.gateway.personal.pseudonymization import PlayerCache
from services.sdk.batches import delimited
from tests.unit.gateway.damaged_events import (
    PLAYERS,
    SECRETS,
    a_full_event,
    damaged_event,
    damaged_message,
    message_of,
    protobuf_body,
)
from tests.unit.gateway.events import (
    GAME,
    an_event,
    batch_of,
    body_of,
    cache_of,
    columnar_preparer,
    row_preparer,
    schema,
)
from tests.unit.properties import examples

Write = Callable[..., bytes]


@cache
def players() -> PlayerCache:
    known = cache_of(10)
    known.add(GAME, {name: PlayerKey(GAME, name.encode().ljust(32)) for name in PLAYERS})
    return known


def batch_preparer() -> BatchPreparer:
    return BatchPreparer(row_preparer(players()), columnar_preparer(players()), min_columnar_events=2)


def stored(prepared: PreparedBatch) -> list[tuple[str, bytes]]:
    return sorted((each.player.key.pseudonym, each.data) for each in prepared.personal_data)


def sent(prepared: PreparedBatch) -> list[tuple[str, Message]]:
    """Keys and events of the records."""
    parse = GetMessageClass(schema().message).FromString
    return [(record["key"], parse(record["value"][HEADER_BYTES:])) for record in prepared.records]


def assert_the_same(batch: EventBatch) -> bool:
    """Compare the results of both preparers. Return True if the batch was prepared as columns."""
    (columnar,) = (
        columnar_preparer(players()).prepare([batch])
        if batch.body_format.supports_columns(batch.raw_events)
        else [None]
    )
    by_row = row_preparer(players()).prepare(batch)
    if columnar is None:
        return False
    if isinstance(columnar, UnknownPlayers):
        assert isinstance(by_row, UnknownPlayers)
        assert set(columnar.names) == set(by_row.names)
        assert set(columnar.personal_data) == set(by_row.personal_data)
        return True
    assert isinstance(columnar, PreparedBatch)
    assert isinstance(by_row, PreparedBatch)
    assert by_row.rejections == []
    assert sent(columnar) == sent(by_row)
    assert stored(columnar) == stored(by_row)
    return True


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_a_valid_body_gives_the_same_records_as_columns_and_one_by_one(content_type: str, write: Write) -> None:
    events = [a_full_event(player) for player in PLAYERS] + [an_event(gamer_id="bob")] * 3

    assert assert_the_same(batch_of(write(*events), content_type))


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_no_personal_data_is_left_in_the_records_of_columns(content_type: str, write: Write) -> None:
    (prepared,) = columnar_preparer(players()).prepare(
        [batch_of(write(*(a_full_event(player) for player in PLAYERS)), content_type)]
    )

    assert isinstance(prepared, PreparedBatch)
    values = b"".join(record["key"].encode() + record["value"] for record in prepared.records)
    assert [secret for secret in SECRETS if secret.encode() in values] == []
    assert len(prepared.personal_data) == len(PLAYERS)


@pytest.mark.parametrize(("content_type", "write"), [(JSON, body_of), (PROTOBUF, protobuf_body)])
def test_the_personal_data_of_unknown_players_is_the_same_from_columns_and_one_by_one(
    content_type: str, write: Write
) -> None:
    events = [a_full_event("new player"), a_full_event(), a_full_event("new player"), an_event(gamer_id="another")]

    assert assert_the_same(batch_of(write(*events), content_type))
    by_row = row_preparer(players()).prepare(batch_of(write(*events), content_type))

    assert isinstance(by_row, UnknownPlayers)
    assert by_row.names == ["new player", "another"]
    assert [each.name for each in by_row.personal_data] == ["new player"]
    assert [secret for secret in SECRETS if secret in repr(by_row.personal_data)] == []


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", 1e308, -1e308, 1e13, 1_000_000.01])
def test_columns_do_not_take_an_implausible_amount(amount: object) -> None:
    body = protobuf_body(an_event(), an_event(event_params={"amount": amount}))

    assert columnar_preparer(players()).prepare([batch_of(body, PROTOBUF)]) == [None]


@pytest.mark.parametrize("amount", [None, 0.0, -0.0, 5e-324, 1_000_000, -1_000_000])
def test_columns_take_any_other_amount(amount: float | None) -> None:
    assert assert_the_same(batch_of(protobuf_body(an_event(event_params={"amount": amount})), PROTOBUF))


def test_a_body_with_invalid_events_does_not_affect_the_others() -> None:
    good, bad = [a_full_event() for _ in range(50)], [a_full_event() for _ in range(50)]
    bad[3] |= {"event_time": "yesterday"}
    bad[7] |= {"event_id": "x"}
    no_message = delimited(message_of(good[0]).SerializeToString()) + delimited(b"\xff\xff\xff")

    batches = [
        batch_of(body_of(*good), JSON),
        batch_of(body_of(*bad), JSON),
        batch_of(body_of(*bad, {"no": "event"}), JSON),
        batch_of(protobuf_body(*good), PROTOBUF),
        batch_of(no_message, PROTOBUF),
        batch_of(body_of(a_full_event("new player")), JSON),
    ]
    first, second, third, fourth, fifth, sixth = batch_preparer().prepare(batches)

    assert isinstance(first, PreparedBatch)
    assert isinstance(fourth, PreparedBatch)
    assert (len(first.records), len(fourth.records)) == (50, 50)
    assert isinstance(second, PreparedBatch)
    assert isinstance(third, PreparedBatch)
    assert isinstance(fifth, PreparedBatch)
    wrong = [(3, Reason.WRONG_TYPE), (7, Reason.NO_EVENT_ID)]
    assert [(each.index, each.reason) for each in second.rejections] == wrong
    assert [(each.index, each.reason) for each in third.rejections] == [*wrong, (50, Reason.UNKNOWN_FIELD)]
    assert [(each.index, each.reason) for each in fifth.rejections] == [(1, Reason.MALFORMED)]
    assert isinstance(sixth, UnknownPlayers)
    assert sixth.names == ["new player"]
    assert [each.name for each in sixth.personal_data] == ["new player"]


def test_events_of_several_games_are_prepared_together() -> None:
    body = body_of(*(an_event(gamer_id="ann") for _ in range(30)))
    foreign = body_of(*(an_event(gamer_id="ann", game_name="Bingo Harbor") for _ in range(30)))

    accepted, wrong, unknown = batch_preparer().prepare(
        [batch_of(body), batch_of(foreign), batch_of(body, game="bingo_harbor")]
    )

    assert isinstance(accepted, PreparedBatch)
    assert isinstance(wrong, PreparedBatch)
    assert {event.game_name for _, event in sent(accepted)} == {"Archery Duel"}  # type: ignore[attr-defined]
    assert {each.reason for each in wrong.rejections} == {Reason.OTHER_GAME}
    assert isinstance(unknown, UnknownPlayers)


@examples(150)
@given(st.lists(damaged_event(st.sampled_from(PLAYERS)), min_size=1, max_size=4))
def test_columns_accept_only_json_that_is_accepted_one_by_one(events: Sequence[dict[str, Any]]) -> None:
    body = json.dumps({"events": events}).encode()

    assert_the_same(batch_of(body, JSON))


@examples(150)
@given(st.lists(damaged_message(st.sampled_from(PLAYERS)), min_size=1, max_size=4))
def test_columns_accept_only_messages_that_are_accepted_one_by_one(messages: Sequence[bytes]) -> None:
    assert_the_same(batch_of(b"".join(map(delimited, messages)), PROTOBUF))
