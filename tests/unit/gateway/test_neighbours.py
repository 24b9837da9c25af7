"""A good event is accepted, once and whole, whatever else its body contains and whatever happens in the meantime.

The result of an event depends only on that event. It does not depend on other events or bodies, on which players the
cache holds, or on an outage of the vault after which the sender sends the body again.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from gamelake.privacy.vault.secrecy import PlayerKey
from services.gateway.errors import EventRejection, Reason
from services.gateway.events.preparation import PreparedBatch, UnknownPlayers
from services.gateway.events.validation import JSON, MAX_EVENT_BYTES, PROTOBUF
from tests.support.logged import logged
from tests.unit.gateway.damaged_events import BROKEN_VALUES, a_full_event, message_of, with_broken_value, written
from tests.unit.gateway.events import GAME, an_event, cache_of, validator
from tests.unit.gateway.worlds import (
    BODIES,
    CIRCUMSTANCES,
    MANY,
    Body,
    Circumstances,
    World,
    a_world,
    assert_as_alone,
    batch_preparer,
)
from tests.unit.properties import examples

MakeWorld = Callable[[Circumstances], AbstractContextManager[World]]


@pytest.fixture
def world(tmp_path: Path) -> MakeWorld:
    """Make a separate world for each example."""

    @contextmanager
    def make(circumstances: Circumstances) -> Iterator[World]:
        with TemporaryDirectory(dir=tmp_path) as folder, a_world(Path(folder), circumstances) as made:
            yield made

    return make


def test_each_event_of_a_body_becomes_what_it_would_become_alone(world: MakeWorld) -> None:
    @examples(200)
    @given(CIRCUMSTANCES, st.lists(BODIES, min_size=1, max_size=2))
    def check(circumstances: Circumstances, bodies: Sequence[Body]) -> None:
        with world(circumstances) as gateway:
            assert_as_alone(gateway, bodies)

    check()


@examples(150)
@given(BODIES, st.sampled_from([1, MANY]))
def test_a_batch_prepared_twice_gives_the_same_as_prepared_once(body: Body, min_columnar_events: int) -> None:
    cache = cache_of(MANY)
    preparer, batch = batch_preparer(cache, min_columnar_events), body.batch()

    (first,) = preparer.prepare([batch])
    (again,) = preparer.prepare([batch])
    assert again == first
    if isinstance(first, UnknownPlayers):
        cache.add(GAME, {name: PlayerKey.new(GAME) for name in first.names})
        (first,) = preparer.prepare([batch])
        (again,) = preparer.prepare([batch])
        assert again == first
    assert isinstance(first, PreparedBatch)


@pytest.mark.parametrize("value", BROKEN_VALUES)
def test_an_event_that_is_not_json_is_rejected_and_costs_no_neighbour(value: bytes, world: MakeWorld) -> None:
    good = [json.dumps(an_event(gamer_id="neighbour")).encode() for _ in range(3)]
    broken = with_broken_value(a_full_event(), value)

    with world(Circumstances()) as gateway:
        (prepared,) = gateway.send([Body(JSON, [good[0], broken, *good[1:]])])

    assert len(prepared.records) == 3
    assert prepared.rejections == [EventRejection(1, Reason.MALFORMED)]


def attributes_of(size: int) -> dict[str, Any]:
    """Return attributes that take about `size` bytes, each within its length."""
    return {"attributes": {f"{number:04}": "x" * 4_086 for number in range(size // 4_100 + 1)}}


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("min_columnar_events", [1, MANY])
def test_an_event_too_large_for_kafka_is_rejected_and_its_personal_data_stays_out_of_the_vault(
    content_type: str, min_columnar_events: int, world: MakeWorld
) -> None:
    large = attributes_of(MAX_EVENT_BYTES) | {"personal": {"email": "large@example.org"}}
    small, long_name = {"personal": {"email": "small@example.org"}}, {"gamer_id": "n" * 257}
    events = [written(content_type, an_event(**fields)) for fields in (small, large, long_name, small)]

    with world(Circumstances(min_columnar_events=min_columnar_events)) as gateway:
        (prepared,) = gateway.send([Body(content_type, events)])
        (stored,) = gateway.personal_data_of(prepared.records[0]["key"])

    assert prepared.rejections == [EventRejection(1, Reason.TOO_LARGE), EventRejection(2, Reason.TOO_LONG, "gamer_id")]
    assert len(prepared.records) == 2
    assert b"small@example.org" in stored


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("min_columnar_events", [1, MANY])
def test_an_event_up_to_the_limit_of_kafka_is_accepted(
    content_type: str, min_columnar_events: int, world: MakeWorld
) -> None:
    almost = written(content_type, an_event(**attributes_of(MAX_EVENT_BYTES - 10_000)))

    with world(Circumstances(min_columnar_events=min_columnar_events)) as gateway:
        (prepared,) = gateway.send([Body(content_type, [almost])])

    assert len(prepared.records) == 1


def test_a_large_body_that_is_read_one_by_one_leaves_turns_to_other_requests(world: MakeWorld) -> None:
    wrong = written(JSON, an_event(nothing_of_the_contract=1))
    large, small = Body(JSON, [wrong] * 100), Body(JSON, [wrong])
    order: list[str] = []

    async def send(gateway: World, name: str, body: Body) -> None:
        await gateway.preparer.prepare(body.batch())
        order.append(name)

    async def run(gateway: World) -> None:
        await asyncio.gather(send(gateway, "large", large), send(gateway, "small", small))

    with world(Circumstances(max_rows=10)) as gateway:
        asyncio.run(run(gateway))

    assert order == ["small", "large"]


def test_an_unforeseen_error_rejects_its_event_alone_and_the_log_quotes_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, world: MakeWorld
) -> None:
    body_format = validator().body_format(PROTOBUF)
    read = body_format.read

    def fail_for_bob(raw_event: bytes) -> Message:
        event = read(raw_event)
        if event.gamer_id == "bob":  # type: ignore[attr-defined]
            raise RuntimeError("bob@example.org")
        return event

    monkeypatch.setattr(body_format, "read", fail_for_bob)
    events = [message_of(an_event(gamer_id=name)).SerializeToString() for name in ("ann", "bob", "bob", "ann")]

    with world(Circumstances(known=frozenset({"ann"}))) as gateway:
        (prepared,) = gateway.send([Body(PROTOBUF, events)])

    assert [(each.index, each.reason) for each in prepared.rejections] == [(1, Reason.MALFORMED), (2, Reason.MALFORMED)]
    assert len(prepared.records) == 2
    assert [each["error_types"] for each in logged(caplog, "events_unreadable")] == [{"RuntimeError": 2}]
    assert "example.org" not in caplog.text
