"""The OpenAPI document has the messages, enumerations and reasons of the contract and the code."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from google.protobuf.descriptor import Descriptor

from gamelake.schemas.event_schemas import load_schema
from services.gateway.errors import Reason
from tools.embedded.service import REPOSITORY

DOCUMENT = yaml.safe_load((REPOSITORY / "services/gateway/pages/openapi.yaml").read_text())
SCHEMAS: Mapping[str, Any] = DOCUMENT["components"]["schemas"]
EVENT = load_schema(REPOSITORY / "contracts/submitted/v4", 4).message
NAMES = {"GameEvent": "Event"}


def described(message: Descriptor) -> Mapping[str, Any]:
    """The schema of a message in the document."""
    found: Mapping[str, Any] = SCHEMAS[NAMES.get(message.name, message.name)]
    return found


@pytest.mark.parametrize("name", ["GameEvent", "EventParams", "Purchase", "ErrorReport", "PersonalData"])
def test_each_message_of_the_contract_is_described_field_by_field(name: str) -> None:
    message = EVENT.file.message_types_by_name[name]

    assert described(message)["additionalProperties"] is False
    assert list(described(message)["properties"]) == [field.name for field in message.fields]


def test_an_enumeration_has_the_contracts_names() -> None:
    connection = EVENT.file.enum_types_by_name["ConnectionType"]

    assert described(EVENT)["properties"]["connection_type"]["enum"] == [value.name for value in connection.values]


def test_the_reasons_of_a_rejection_are_those_of_the_code() -> None:
    assert SCHEMAS["Rejection"]["properties"]["reason"]["enum"] == [reason.value for reason in Reason]
