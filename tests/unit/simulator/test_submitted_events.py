"""What the games' SDKs send: the same events, with personal data, grouped by game."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.arrays import Bytes
from services.sdk import EventFormat, EventGroup
from tests.unit.simulator.builders import NOW_US, Event, a_run, a_spec, events, only, schemas
from tools.simulator.defects import corrupt_messages
from tools.simulator.encoding import SubmittedEncoder, load_submitted
from tools.simulator.players import IDENTIFYING
from tools.simulator.sdk_payloads import SdkPayload, payloads_by_game
from tools.simulator.spec import Shares
from tools.simulator.text import uuid_text
from tools.simulator.traffic import TrafficBatch, TrafficGenerator

PERSONAL = ("email", "ip_address", "player_name")


@cache
def encoders() -> tuple[SubmittedEncoder, ...]:
    submitted = load_submitted(Path("contracts"))
    return tuple(SubmittedEncoder(schema, submitted) for schema in schemas())


@cache
def event_class() -> type[Message]:
    return GetMessageClass(load_submitted(Path("contracts")).message)


def a_submitted_run(**changes: object) -> TrafficGenerator:
    spec = a_spec(**{"naming": IDENTIFYING} | changes)
    return TrafficGenerator(spec, encoders()[: spec.versions], clock=lambda: NOW_US, corrupt=corrupt_messages)


def submitted(traffic: TrafficGenerator) -> list[Event]:
    values = [value for batch in traffic.batches() for value in batch.values.to_pylist()]
    return [event_class().FromString(value) for value in values]


@cache
def good_events() -> tuple[Event, ...]:
    return tuple(submitted(a_submitted_run()))


def test_a_game_submits_what_a_producer_would_write_to_kafka() -> None:
    straight = {sent.event.event_id: sent.event for sent in events(a_run(naming=IDENTIFYING))}

    for event in good_events():
        event = event_class().FromString(event.SerializeToString())  # noqa: PLW2901 # the cached one stays whole
        event.ClearField("personal")
        other = straight.pop(event.event_id)  # type: ignore[attr-defined] # see above
        other.ClearField("ingest_time")
        assert event.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    assert straight == {}


def test_only_the_first_event_of_a_session_has_personal_data() -> None:
    says = {event.event_name for event in good_events() if event.HasField("personal")}
    starts = [event for event in good_events() if event.event_name == "session_start"]

    assert says == {"session_start"}
    assert len(starts) > 100
    assert all(getattr(event.personal, name) for event in starts for name in PERSONAL)
    texts = [event.personal.free_text for event in starts]
    assert 0 < sum(map(bool, texts)) < len(texts)


def test_personal_data_is_constant_per_player_and_differs_between_players() -> None:
    by_player: dict[str, set[str]] = {}
    for event in good_events():
        if event.HasField("personal"):
            by_player.setdefault(event.gamer_id, set()).add(event.personal.email)

    assert all(len(emails) == 1 for emails in by_player.values())
    assert len({email for emails in by_player.values() for email in emails}) == len(by_player)


def test_no_hexadecimal_text_contains_a_players_id() -> None:
    assert {event.gamer_id[0] for event in good_events()} == {"p"}
    assert {event.event_params.device_id[0] for event in good_events()} == {"v"}


def test_an_older_sdk_leaves_newer_fields_empty() -> None:
    oldest = submitted(a_submitted_run(versions=1))

    assert any(event.HasField("personal") for event in oldest)
    assert not any(event.HasField("purchase") or event.event_params.country or event.attributes for event in oldest)
    assert any(event.attributes for event in good_events())


def test_a_corrupted_message_cannot_be_decoded() -> None:
    unreadable = 0
    for batch in a_submitted_run(shares=only(undecodable=0.3)).batches():
        for value in batch.values.to_pylist():
            try:
                event_class().FromString(value)
            except DecodeError:
                unreadable += 1

    assert unreadable == pytest.approx(0.3 * 6_000, rel=0.1)


def cut(traffic: TrafficGenerator, most: int) -> list[tuple[TrafficBatch, list[SdkPayload]]]:
    return [
        (batch, list(payloads_by_game(batch, traffic.home_games(batch.events), most)))
        for batch in traffic.batches(2_000)
    ]


def messages_in(payload: SdkPayload) -> tuple[bytes, ...]:
    return EventGroup(1, EventFormat.PROTOBUF, len(payload), payload.data).events()


def test_each_game_gets_its_events_in_order_and_each_payload_is_within_the_limit() -> None:
    traffic = a_submitted_run(shares=Shares())

    for batch, cut_up in cut(traffic, 150):
        values = batch.values.to_pylist()
        games = traffic.home_games(batch.events)[batch.origin]
        for game in range(3):
            wanted = [value for value, home in zip(values, games, strict=True) if home == game]
            got = [message for payload in cut_up if payload.game == game for message in messages_in(payload)]
            assert got == wanted
        assert max(map(len, cut_up)) <= 150
        assert sum(map(len, cut_up)) == len(values)


def test_a_payload_has_its_event_ids_and_marks_copies() -> None:
    ids: list[str] = []
    again: list[str] = []
    for _, cut_up in cut(a_submitted_run(shares=only(duplicate=0.2)), 1_000):
        for payload in cut_up:
            read = [event_class().FromString(message) for message in messages_in(payload)]
            assert [uuid_of(row) for row in payload.event_ids] == [event.event_id for event in read]  # type: ignore[attr-defined]
            for event, is_copy in zip(read, payload.copies.tolist(), strict=True):
                (again if is_copy else ids).append(event.event_id)  # type: ignore[attr-defined]

    assert len(set(ids)) == len(ids) == 6_000
    assert set(again) < set(ids)
    assert len(again) == pytest.approx(0.2 * 6_000, rel=0.1)


def uuid_of(row: Bytes) -> str:
    text: str = uuid_text(row.reshape(1, -1))[0].as_py()
    return text


@pytest.mark.parametrize("sizes", [[0, 1, 127, 128, 129], [16_383, 16_384, 16_385, 2**20], [5]])
def test_lengths_of_any_size_are_written_as_the_sdk_reads_them(sizes: list[int]) -> None:
    (batch, _), *_ = cut(a_submitted_run(events=len(sizes), players=len(sizes) * 40), 100)
    written = [bytes([number]) * size for number, size in enumerate(sizes)][: len(batch.events)]
    values = pa.array(written + [b""] * (len(batch.values) - len(written)), pa.binary())
    long = TrafficBatch(batch.keys, values, batch.events, batch.origin)

    (payload,) = payloads_by_game(long, np.zeros(len(batch.events), dtype=np.int16), 100)

    assert messages_in(payload) == tuple(values.to_pylist())
