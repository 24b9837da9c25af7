"""The submitted contract: which fields are personal, and that all others are those of the lake."""

from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor
from msgspec.structs import replace

from gamelake.contract.games import TextLengths, load_games
from gamelake.model.errors import ContractError
from gamelake.privacy.vault.migrations import MOST_SEALED_BYTES
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from services.gateway.personal.fields import FieldPath, PersonalFields, check_vault_takes, personal_fields
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


def test_the_vault_takes_the_longest_texts_of_the_contract_and_a_contract_with_longer_ones_is_refused() -> None:
    event, lengths = submitted(), load_games(Path("contracts/games.yaml")).lengths
    check_vault_takes(event, personal_fields(event), lengths)

    longer = replace(lengths, fields={**lengths.fields, "personal.free_text": MOST_SEALED_BYTES})
    with pytest.raises(ContractError, match=r"lower `lengths` in contracts/games\.yaml"):
        check_vault_takes(event, personal_fields(event), longer)


def test_a_list_of_personal_data_is_refused_since_nothing_limits_it() -> None:
    event = compiled('syntax = "proto3"; message Event { Inner a = 1; } message Inner { repeated string b = 1; }')

    with pytest.raises(ContractError, match=r"a\.b is marked for the vault, which takes no lists"):
        check_vault_takes(event, PersonalFields("p", (FieldPath((), "a"),)), TextLengths())
