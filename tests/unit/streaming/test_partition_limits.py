"""Texts that a sender invents for a partition column make no file each, and cost no other event its row."""

from collections import Counter
from pathlib import Path

import pytest

from gamelake.contract.games import GamesContract, GameSpec, PartitionColumn, TextLengths
from gamelake.model.naming import SILVER_EVENTS
from gamelake.streaming.tasks.partition_limits import LONGEST_VALUE, MOST_PARTITIONS
from tests.unit.streaming.tasks import (
    KART,
    KART_TABLE,
    YETI,
    YETI_TABLE,
    TaskLakehouse,
    TaskOutcome,
    a_record,
    numbered,
)

BY = (PartitionColumn.EVENT_DATE, PartitionColumn.EVENT_NAME)


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    """Kart's table is partitioned by the names of events, Yeti's is not."""
    kart = GameSpec(name=KART.name, match=KART.match, partition_by=BY)
    return TaskLakehouse(tmp_path, GamesContract(games=(kart, YETI), lengths=TextLengths(default=1_000)))


def names(outcome: TaskOutcome) -> Counter[str]:
    return Counter(row["event_name"] for row in outcome.rows(KART_TABLE))


def test_invented_names_are_dead_letters_beyond_a_number_and_frequent_ones_are_rows(lakehouse: TaskLakehouse) -> None:
    invented = [a_record(1, eventName=f"invented_{number}") for number in range(2_000)]
    frequent = [a_record(1, eventName=name) for name in ("started", "ended")] * 20
    others = [a_record(1, gameName="Yeti Ski", eventName=f"invented_{number}") for number in range(500)]

    outcome = lakehouse.run(numbered([*invented, *frequent, *others]), batch_records=10_000)

    assert len(names(outcome)) == MOST_PARTITIONS
    assert (names(outcome)["started"], names(outcome)["ended"]) == (20, 20)
    excess = 2_000 - (MOST_PARTITIONS - 2)
    assert dict(outcome.dead_letters) == {"too_many_partitions": excess}
    assert len([file for file in outcome.files if file.table == KART_TABLE]) == MOST_PARTITIONS
    assert outcome.count(YETI_TABLE) == 500
    assert outcome.count(SILVER_EVENTS) == 2_000 + 40 + 500 - excess


def test_the_number_is_that_of_the_whole_task(lakehouse: TaskLakehouse) -> None:
    records = [a_record(1, eventName=f"invented_{number}") for number in range(600)]

    outcome = lakehouse.run(numbered([*records, a_record(1, eventName="invented_0")]), batch_records=100)

    assert len(names(outcome)) == MOST_PARTITIONS
    assert names(outcome)["invented_0"] == 2


@pytest.mark.parametrize("letter", ["a", "é", "値"])
def test_a_name_that_no_path_can_have_is_a_dead_letter(lakehouse: TaskLakehouse, letter: str) -> None:
    longest = letter * (LONGEST_VALUE // len(letter.encode()))

    outcome = lakehouse.run(numbered([a_record(1, eventName=longest), a_record(1, eventName=longest + "aaa")]))

    assert names(outcome) == {longest: 1}
    assert dict(outcome.dead_letters) == {"too_many_partitions": 1}
