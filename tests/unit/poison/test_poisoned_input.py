"""Whatever comes to the platform, other games' events are rows in time, and each input is accounted for."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from tests.unit.gateway.flag_requests import Flags
from tests.unit.poison.declaration_attacks import (
    DECLARATION_ATTACKS,
    READERS,
    DeclarationAttack,
    check_declaration_attack,
)
from tests.unit.poison.file_attacks import FILE_ATTACKS, HostileObject, check_file_attack
from tests.unit.poison.flag_attacks import FLAG_ATTACKS, MEMORY, FlagAttack, check_flag_attack
from tests.unit.poison.gateway_attacks import check_gateway_attack
from tests.unit.poison.gateway_requests import GATEWAY_ATTACKS, GatewayAttack
from tests.unit.poison.kafka_attacks import KAFKA_ATTACKS, KafkaAttack, check_kafka_attack
from tests.unit.poison.live_ops_attacks import check_live_ops_attack
from tests.unit.properties import examples

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@examples(40, "POISON_FACTOR")
@given(KAFKA_ATTACKS)
def test_an_attack_on_the_topic_the_registry_the_tables_or_the_rules_harms_no_other_game(attack: KafkaAttack) -> None:
    with TemporaryDirectory() as folder:
        check_kafka_attack(attack, Path(folder))


@examples(110, "POISON_FACTOR")
@given(FILE_ATTACKS)
def test_an_attack_on_the_file_source_harms_no_other_file(attack: Sequence[HostileObject]) -> None:
    with TemporaryDirectory() as folder:
        check_file_attack(attack, Path(folder))


@examples(10, "POISON_FACTOR")
@given(KAFKA_ATTACKS)
def test_an_attack_on_live_operations_harms_no_other_game(attack: KafkaAttack) -> None:
    with TemporaryDirectory() as folder:
        check_live_ops_attack(attack, Path(folder))


@examples(60, "POISON_FACTOR")
@given(GATEWAY_ATTACKS)
def test_an_attack_on_the_gateway_costs_no_good_event(attack: GatewayAttack) -> None:
    with TemporaryDirectory() as folder:
        check_gateway_attack(attack, Path(folder))


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Flags:
    return Flags.open(tmp_path_factory.mktemp("flags"), memory=MEMORY)


@examples(150, "POISON_FACTOR")
@given(attack=FLAG_ATTACKS)
def test_an_attack_on_the_flags_gets_refusals_of_the_protocol_and_costs_no_variant(
    flags: Flags, attack: Sequence[FlagAttack]
) -> None:
    check_flag_attack(attack, flags)


@examples(65, "POISON_FACTOR")
@given(DECLARATION_ATTACKS)
def test_a_damaged_declaration_is_refused_with_its_line_and_what_runs_goes_on(attack: DeclarationAttack) -> None:
    with TemporaryDirectory() as folder:
        check_declaration_attack(attack, Path(folder))


@pytest.mark.parametrize("file", READERS)
def test_a_file_in_another_encoding_leaves_what_runs_as_it_was(file: str, tmp_path: Path) -> None:
    check_declaration_attack((file, READERS[file].good + "# für alle".encode("latin-1")), tmp_path)
