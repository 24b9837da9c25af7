"""The attacks find known faults again once their fixes are taken out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from services.gateway.events.validation import JSON
from tests.unit.gateway.events import an_event
from tests.unit.gateway.worlds import Body
from tests.unit.poison import faults
from tests.unit.poison.faults import Undo
from tests.unit.poison.file_attacks import FILE_ATTACKS, check_file_attack, odd_object
from tests.unit.poison.gateway_attacks import check_gateway_attack
from tests.unit.poison.gateway_requests import GATEWAY_ATTACKS, GatewayAttack
from tests.unit.poison.kafka_attacks import (
    KAFKA_ATTACKS,
    HostileRecord,
    KafkaAttack,
    check_kafka_attack,
    event_bytes,
    expanding_value,
)
from tests.unit.properties import examples
from tests.unit.streaming.damaged_logs import MISSING
from tests.unit.streaming.tasks import an_event as a_streamed_event

_UNTIL_ONE_FAILS = settings(
    examples(300), phases=[Phase.generate], report_multiple_bugs=False, derandomize=True, database=None
)


@dataclass(frozen=True, slots=True)
class Attacks:
    """Attacks of one kind, and how one is checked."""

    cases: st.SearchStrategy[Any]
    check: Callable[[Any, Path], None]

    def attack(self, case: Any) -> None:  # noqa: ANN401 # any attack
        with TemporaryDirectory() as folder:
            self.check(case, Path(folder))

    def run(self) -> None:
        """Run random attacks, the same ones each time, until one fails."""
        _UNTIL_ONE_FAILS(given(self.cases)(self.attack))()


TOPIC, FILES = Attacks(KAFKA_ATTACKS, check_kafka_attack), Attacks(FILE_ATTACKS, check_file_attack)
GATEWAY = Attacks(GATEWAY_ATTACKS, check_gateway_attack)
_EVENT = event_bytes(a_streamed_event())
_NEW_PLAYER = [msgspec.json.encode(an_event(gamer_id="ann", **fields)) for fields in ({}, {"event_time": True})]
# What random attacks shrink to.
SHORTEST: Mapping[Undo, tuple[Attacks, object, str]] = {
    faults.conflicts_in_a_few_tables_only: (TOPIC, KafkaAttack(conflicts=5), "column odd is"),
    faults.unknown_schemas_without_a_budget: (TOPIC, KafkaAttack(invented=1_000), r"it took \d+\.\d s"),
    faults.tables_that_refuse_what_is_known_only: (TOPIC, KafkaAttack(damage=MISSING), "target_0_events|Kernel error"),
    faults.rules_in_another_encoding: (
        TOPIC,
        KafkaAttack(rules="rules: # für alle".encode("latin-1")),
        "codec can't decode|not allowed|maximum recursion|unhashable|out of range",
    ),
    faults.timestamps_of_any_year: (
        TOPIC,
        KafkaAttack(records=[HostileRecord(value=_EVENT, milliseconds=253_402_300_800_000)]),
        "OverflowError",
    ),
    faults.records_that_expand_in_memory: (
        TOPIC,
        KafkaAttack(records=[HostileRecord(value=expanding_value(_EVENT, 30_000, 900_000))]),
        r"it took \d+ MiB",
    ),
    faults.names_that_a_client_refuses: (FILES, [odd_object("a\tb", 2)], "Could not parse path|Unable to"),
    faults.files_that_expand_in_memory: (FILES, [odd_object("a.parquet", 11)], r"it took \d+ MiB"),
    faults.events_that_are_converted_in_place: (
        GATEWAY,
        GatewayAttack(bodies=[(Body(JSON, _NEW_PLAYER), "identity")]),
        "its neighbours change what becomes of an event",
    ),
    faults.bodies_without_a_budget_of_memory: (
        GATEWAY,
        GatewayAttack(expanding=(60, "attributes")),
        r"it took \d+ MiB",
    ),
}
_each_fault = pytest.mark.parametrize("undo", SHORTEST, ids=lambda undo: undo.__name__)


@_each_fault
def test_a_short_attack_finds_a_fault_again_and_passes_without_it(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    attacks, attack, found = SHORTEST[undo]
    attacks.attack(attack)

    undo(monkeypatch)
    with pytest.raises(Exception, match=found):
        attacks.attack(attack)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@_each_fault
def test_a_fault_is_found_again(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    attacks, _, found = SHORTEST[undo]
    undo(monkeypatch)
    with pytest.raises(Exception, match=found):
        attacks.run()
