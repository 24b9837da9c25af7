"""The submitted contract: which fields are personal, and that all others are those of the lake."""

import pytest
from google.protobuf.descriptor import Descriptor

from gamelake.model.errors import ContractError
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from services.gateway.personal.fields import personal_fields
from tests.unit.gateway.events import schema, submitted


def compiled(source: str) -> Descriptor:
    return message_at(compile_sources({ROOT_FILE: source}), (0,))


def shape(message: Descriptor) -> dict[str, object]:
    """Names, numbers and types of all fields, nested ones included."""
    return {
        field.name: (
            field.number,
            field.type,
            field.is_repeated,
            field.has_presence,
            shape(field.message_type) if field.message_type else None,
            sorted(field.enum_type.values_by_name) if field.enum_type else None,
        )
        for field in message.fields
    }


def test_the_marked_fields_are_the_personal_ones() -> None:
    fields = personal_fields(submitted())

    assert fields.player == "gamer_id"
    assert [str(path) for path in fields.vault] == ["event_params.device_id", "personal"]


def test_fields_that_are_not_personal_are_those_of_the_lake() -> None:
    sent, kept = shape(submitted()), shape(schema().message)
    del sent["personal"]

    assert sent == kept


@pytest.mark.parametrize(
    "fields", ["string a = 1;", "string a = 1 [(treatment) = P]; string b = 2 [(treatment) = P];", "Inner a = 1;"]
)
def test_a_contract_without_exactly_one_player_field_is_refused(fields: str) -> None:
    source = (
        'syntax = "proto3"; package gamelake.submitted; import "google/protobuf/descriptor.proto";'
        f"message Event {{ {fields} }}"
        "message Inner { string c = 1 [(treatment) = P]; }"
        "enum Treatment { N = 0; P = 1; V = 2; }"
        "extend google.protobuf.FieldOptions { Treatment treatment = 50701; }"
    )

    with pytest.raises(ContractError, match="TREATMENT_PSEUDONYM"):
        personal_fields(compiled(source))
