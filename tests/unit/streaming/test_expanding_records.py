"""Records that take many times their bytes once they are decoded take no more memory in a task than others do."""

from pathlib import Path

import pytest

from gamelake.streaming.plan import MIB, ChunkLimits
from tests.unit.poison.budgets import budget
from tests.unit.schemas.protos import varint
from tests.unit.streaming.tasks import (
    KART_TABLE,
    YETI_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    a_record,
    an_event,
    compiled,
    framed,
    numbered,
)

_NAME = "N" * 250
_V1 = Path("contracts/proto/v1/game_event.proto").read_text(encoding="utf-8")
_EXPANDING = _V1.replace("message GameEvent {", "message GameEvent {\n  repeated Kind kinds = 900;", 1)
_SCHEMA, _ID = compiled(f"{_EXPANDING} enum Kind {{ {_NAME} = 0; }}"), 70


def expanding(names: int) -> KafkaTaskRecord:
    """A record with a list of names, of one byte each."""
    return KafkaTaskRecord(
        value=framed(an_event(), _SCHEMA, _ID) + varint(900 << 3 | 2) + varint(names) + b"\0" * names
    )


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    lakehouse = TaskLakehouse(tmp_path)
    lakehouse.register(_ID, _SCHEMA)
    lakehouse.run([a_record(1), expanding(1)])
    return lakehouse


def test_many_records_that_expand_within_the_limit_are_rows_of_several_chunks(lakehouse: TaskLakehouse) -> None:
    # Of 25 MiB each.
    records = numbered([each for _ in range(20) for each in (expanding(100_000), a_record(1, gameName="Yeti Ski"))])

    # In one chunk they take 553 MiB. In chunks they take 200, and 265 in a process that has run thousands of tests.
    with budget(384):
        outcome = lakehouse.run(records, chunk=ChunkLimits(decoded_bytes=32 * MIB))

    assert not outcome.dead_letters
    assert (outcome.records, outcome.count(KART_TABLE), outcome.count(YETI_TABLE)) == (40, 20, 20)
    assert len(outcome.reports) > 3


def test_a_record_that_expands_beyond_the_limit_is_a_dead_letter_and_the_others_are_rows(
    lakehouse: TaskLakehouse,
) -> None:
    hostile = expanding(2_000_000)

    with budget():
        outcome = lakehouse.run(numbered([a_record(1), hostile, a_record(1, gameName="Yeti Ski")]))

    (letter,) = outcome.rows("dead_letters/events")
    assert (letter["reason"], letter["value"] == hostile.value) == ("record_too_large", True)
    assert (outcome.count(KART_TABLE), outcome.count(YETI_TABLE)) == (1, 1)
