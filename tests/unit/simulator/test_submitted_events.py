"""What the games' SDKs hand over: the same events as ever, with what is personal, cut for each game."""

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from services.sdk import Form
from services.sdk import Parcel as SdkParcel
from tests.unit.simulator.builders import NOW_US, Event, a_run, a_spec, events, only, schemas
from tools.simulator.defects import spoil_message
from tools.simulator.encoding import SubmittedEncoder, load_submitted
from tools.simulator.players import IDENTIFYING
from tools.simulator.sdk_payloads import Packet, packets
from tools.simulator.spec import Shares
from tools.simulator.text import uuid_text
from tools.simulator.traffic import Parcel, Traffic

PERSONAL = ("email", "ip_address", "player_name")


@cache
def encoders() -> tuple[SubmittedEncoder, ...]:
    submitted = load_submitted(Path("contracts"))
    return tuple(SubmittedEncoder(schema, submitted) for schema in schemas())


@cache
def event_class() -> type[Message]:
    return GetMessageClass(load_submitted(Path("contracts")).message)


def a_submitted_run(**changes: object) -> Traffic:
    spec = a_spec(**{"naming": IDENTIFYING} | changes)
    return Traffic(spec, encoders()[: spec.versions], clock=lambda: NOW_US, spoil=spoil_message)


def submitted(traffic: Traffic) -> list[Event]:
    values = [value for parcel in traffic.parcels() for value in parcel.values.to_pylist()]
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


def test_a_session_begins_with_who_plays_and_no_other_event_says_it() -> None:
    says = {event.event_name for event in good_events() if event.HasField("personal")}
    starts = [event for event in good_events() if event.event_name == "session_start"]

    assert says == {"session_start"}
    assert len(starts) > 100
    assert all(getattr(event.personal, name) for event in starts for name in PERSONAL)
    texts = [event.personal.free_text for event in starts]
    assert 0 < sum(map(bool, texts)) < len(texts)


def test_what_is_personal_is_the_same_for_the_same_player_and_another_for_others() -> None:
    by_player: dict[str, set[str]] = {}
    for event in good_events():
        if event.HasField("personal"):
            by_player.setdefault(event.gamer_id, set()).add(event.personal.email)

    assert all(len(emails) == 1 for emails in by_player.values())
    assert len({email for emails in by_player.values() for email in emails}) == len(by_player)


def test_no_hexadecimal_text_can_pass_for_the_name_of_a_player() -> None:
    assert {event.gamer_id[0] for event in good_events()} == {"p"}
    assert {event.event_params.device_id[0] for event in good_events()} == {"v"}


def test_an_older_sdk_leaves_empty_what_it_does_not_know() -> None:
    oldest = submitted(a_submitted_run(versions=1))

    assert any(event.HasField("personal") for event in oldest)
    assert not any(event.HasField("purchase") or event.event_params.country or event.attributes for event in oldest)
    assert any(event.attributes for event in good_events())


def test_no_game_says_when_the_platform_took_an_event_in() -> None:
    assert not any(event.HasField("ingest_time") for event in good_events())


def test_a_spoiled_message_can_not_be_read() -> None:
    unreadable = 0
    for parcel in a_submitted_run(shares=only(undecodable=0.3)).parcels():
        for value in parcel.values.to_pylist():
            try:
                event_class().FromString(value)
            except DecodeError:
                unreadable += 1

    assert unreadable == pytest.approx(0.3 * 6_000, rel=0.1)


def cut(traffic: Traffic, most: int) -> list[tuple[Parcel, list[Packet]]]:
    return [
        (parcel, list(packets(parcel, traffic.home_games(parcel.moments), most))) for parcel in traffic.parcels(2_000)
    ]


def messages_in(packet: Packet) -> tuple[bytes, ...]:
    return SdkParcel(1, Form.PROTOBUF, len(packet), packet.payload).events()


def test_each_game_gets_its_events_in_their_order_and_each_packet_is_small_enough() -> None:
    traffic = a_submitted_run(shares=Shares())

    for parcel, cut_up in cut(traffic, 150):
        values = parcel.values.to_pylist()
        games = traffic.home_games(parcel.moments)[parcel.origin]
        for game in range(3):
            wanted = [value for value, home in zip(values, games, strict=True) if home == game]
            got = [message for packet in cut_up if packet.game == game for message in messages_in(packet)]
            assert got == wanted
        assert max(map(len, cut_up)) <= 150
        assert sum(map(len, cut_up)) == len(values)


def test_a_packet_knows_its_events_and_which_of_them_are_copies() -> None:
    ids: list[str] = []
    again: list[str] = []
    for _, cut_up in cut(a_submitted_run(shares=only(duplicate=0.2)), 1_000):
        for packet in cut_up:
            read = [event_class().FromString(message) for message in messages_in(packet)]
            assert [uuid_of(row) for row in packet.event_ids] == [event.event_id for event in read]  # type: ignore[attr-defined]
            for event, is_copy in zip(read, packet.copies.tolist(), strict=True):
                (again if is_copy else ids).append(event.event_id)  # type: ignore[attr-defined]

    assert len(set(ids)) == len(ids) == 6_000
    assert set(again) < set(ids)
    assert len(again) == pytest.approx(0.2 * 6_000, rel=0.1)


def uuid_of(row: npt.NDArray[np.uint8]) -> str:
    text: str = uuid_text(row.reshape(1, -1))[0].as_py()
    return text


@pytest.mark.parametrize("sizes", [[0, 1, 127, 128, 129], [16_383, 16_384, 16_385, 2**20], [5]])
def test_lengths_of_any_size_are_written_as_the_sdk_reads_them(sizes: list[int]) -> None:
    (parcel, _), *_ = cut(a_submitted_run(events=len(sizes), players=len(sizes) * 40), 100)
    written = [bytes([number]) * size for number, size in enumerate(sizes)][: len(parcel.moments)]
    values = pa.array(written + [b""] * (len(parcel.values) - len(written)), pa.binary())
    long = Parcel(parcel.keys, values, parcel.moments, parcel.origin)

    (packet,) = packets(long, np.zeros(len(parcel.moments), dtype=np.int16), 100)

    assert messages_in(packet) == tuple(values.to_pylist())
