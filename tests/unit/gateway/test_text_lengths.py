"""Each text of an event has a greatest length, which is the same event by event and as columns."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.games import TextLengths
from gamelake.model.errors import ContractError
from services.gateway.errors import EventRejectedError
from services.gateway.events.columns import handler_of
from services.gateway.events.preparation import UnknownPlayers
from services.gateway.events.text_lengths import TextLengthCheck
from services.gateway.events.validation import JSON, PROTOBUF
from tests.unit.gateway.damaged_events import joined, message_of, written
from tests.unit.gateway.events import an_event, batch_of, cache_of, columnar_preparer, contract, row_preparer, submitted
from tests.unit.properties import examples

LENGTHS = TextLengths(default=40, fields={"personal.free_text": 60, "attributes": 50})
CHECK = TextLengthCheck(submitted(), LENGTHS)

# Each text of the event by its path, as an event that has only this text.
TEXTS: dict[str, Any] = {
    "event_name": lambda text: {"event_name": text},
    "game_name": lambda text: {"game_name": text},
    "gamer_id": lambda text: {"gamer_id": text},
    "session_id": lambda text: {"session_id": text},
    "event_params.device_id": lambda text: {"event_params": {"device_id": text}},
    "event_params.country": lambda text: {"event_params": {"country": text}},
    "purchase.product_id": lambda text: {"purchase": {"product_id": text}},
    "experiment_ids": lambda text: {"experiment_ids": ["short", text]},
    "attributes": lambda text: {"attributes": {"short": "short", text: ""}},
    "error.code": lambda text: {"error": {"code": text}},
    "personal.email": lambda text: {"personal": {"email": text}},
    "personal.free_text": lambda text: {"personal": {"free_text": text}},
}


def rejected_by_row(fields: dict[str, Any]) -> str | None:
    try:
        CHECK.check(message_of(fields))
    except EventRejectedError as rejected:
        return rejected.field
    return None


def rejected_as_columns(*events: dict[str, Any]) -> list[bool]:
    bodies = [message_of(each).SerializeToString() for each in events]
    columns = handler_of(submitted()).array_to_record_batch(pa.array(bodies, pa.binary()))
    flags: list[bool] = CHECK.too_long(columns).tolist()
    return flags


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_over_its_limit_in_bytes_is_too_long_and_is_named(path: str) -> None:
    limit = LENGTHS.of(path)
    longest, longer = TEXTS[path]("x" * limit), TEXTS[path]("x" * (limit + 1))
    # A euro sign takes three bytes.
    wide = TEXTS[path]("€" * (limit // 3 + 1))

    assert (rejected_by_row(longest), rejected_by_row(longer), rejected_by_row(wide)) == (None, path, path)
    assert rejected_as_columns({}, longest, longer, {}, wide) == [False, False, True, False, True]


@given(st.lists(st.dictionaries(st.sampled_from(list(TEXTS)), st.text(max_size=70), max_size=3), max_size=5))
@examples(200)
def test_rows_and_columns_find_the_same_events(drawn: list[dict[str, str]]) -> None:
    events = []
    for texts in drawn:
        event: dict[str, Any] = {}
        for path, text in texts.items():
            for name, value in TEXTS[path](text).items():
                event[name] = {**event[name], **value} if isinstance(event.get(name), dict) else value
        events.append(event)

    assert rejected_as_columns(*events) == [rejected_by_row(event) is not None for event in events]


def test_a_limit_of_a_field_that_the_event_lacks_is_an_error() -> None:
    with pytest.raises(ContractError, match=r"personal\.nickname"):
        TextLengthCheck(submitted(), TextLengths(fields={"personal.nickname": 40}))


def test_all_texts_of_the_contract_have_a_limit_of_some_kib() -> None:
    assert max(contract().lengths.default, *contract().lengths.fields.values()) <= 8 * 1024


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("field", ["gamer_id", "personal.free_text", "event_params.device_id"])
def test_an_event_with_a_text_that_is_too_long_is_rejected_before_the_vault_sees_it(
    content_type: str, field: str
) -> None:
    long = an_event(**TEXTS[field]("x" * (contract().lengths.of(field) + 1)))
    good = an_event(gamer_id="neighbour")
    events = [written(content_type, event) for event in (long, good)]
    batch, cache = batch_of(joined(content_type, events), content_type), cache_of(10)

    assert columnar_preparer(cache).prepare([batch]) == [None]
    prepared = row_preparer(cache).prepare(batch)

    assert isinstance(prepared, UnknownPlayers)
    assert (prepared.names, prepared.personal_data) == (["neighbour"], [])
