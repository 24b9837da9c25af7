"""Whatever the store answers, each event is a row once, and a table about which it answers wrongly stops no other."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given

from tests.embedded.store_attacks import STORE_ATTACKS, StoreAttack, check_store_attack
from tests.unit.properties import examples


@examples(25, "POISON_FACTOR")
@given(STORE_ATTACKS)
def test_hostile_answers_of_the_store_neither_lose_nor_double_an_event(attack: StoreAttack) -> None:
    with TemporaryDirectory() as folder:
        check_store_attack(attack, Path(folder))
