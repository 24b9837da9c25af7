"""Each sample under contracts/samples runs through the real task and ends where it says."""

import json
from datetime import date, datetime
from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS
from tests.unit.streaming.tasks import (
    Json,
    KafkaTaskRecord,
    TaskLakehouse,
    TaskOutcome,
    framed,
    game_event_schema,
    schema_id,
)

_SAMPLES = sorted(Path("contracts/samples").glob("*.json"))
_PASSING = [path for path in _SAMPLES if path.name.endswith(".pass.json")]
_FAILING = [path for path in _SAMPLES if path.name.endswith(".fail.json")]
# What an event can be refused for once it is a valid message; the other reasons are about bytes and schemas.
_REASONS_OF_EVENTS = {
    DeadLetterReason.NO_EVENT_TIME,
    DeadLetterReason.IMPLAUSIBLE_EVENT_TIME,
    DeadLetterReason.IMPLAUSIBLE_AMOUNT,
    DeadLetterReason.UNROUTABLE,
}


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    return TaskLakehouse(tmp_path, load_games(Path("contracts/games.yaml")))


def _read(path: Path) -> Json:
    sample: Json = json.loads(path.read_text(encoding="utf-8"))
    return sample


def _run(path: Path, lakehouse: TaskLakehouse) -> TaskOutcome:
    sample = _read(path)
    version = int(path.name.split(".")[1].removeprefix("v"))
    value = framed(sample["event"], game_event_schema(version), schema_id(version))
    taken_in = datetime.fromisoformat(sample.get("taken_in", "2026-01-01T12:00:00Z"))
    return lakehouse.run([KafkaTaskRecord(value=value, timestamp=taken_in)])


def _as_json(value: object) -> object:
    """A column's value as a sample writes it."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


def test_every_sample_is_named_by_its_kind_and_its_outcome() -> None:
    assert _SAMPLES
    assert sorted([*_PASSING, *_FAILING]) == _SAMPLES
    assert {path.name.split(".")[1] for path in _SAMPLES} == {"v1", "v2", "v3", "v4"}


def test_there_is_a_sample_for_every_reason_that_an_event_can_be_refused_for() -> None:
    assert {_read(path)["reason"] for path in _FAILING} == _REASONS_OF_EVENTS


@pytest.mark.parametrize("path", _PASSING, ids=lambda path: path.name)
def test_a_good_sample_becomes_a_row_of_its_table(path: Path, lakehouse: TaskLakehouse) -> None:
    sample, outcome = _read(path), _run(path, lakehouse)

    assert dict(outcome.dead_letters) == {}
    assert outcome.game_tables == {sample["table"]}
    (row,) = outcome.rows(sample["table"])
    assert {name: _as_json(row[name]) for name in sample["columns"]} == sample["columns"]
    assert outcome.count(SILVER_EVENTS) == outcome.count(BRONZE_EVENTS) == 1


@pytest.mark.parametrize("path", _FAILING, ids=lambda path: path.name)
def test_a_bad_sample_becomes_a_dead_letter(path: Path, lakehouse: TaskLakehouse) -> None:
    sample, outcome = _read(path), _run(path, lakehouse)

    assert outcome.game_tables == set()
    assert dict(outcome.dead_letters) == {sample["reason"]: 1}
    (letter,) = outcome.rows(DEAD_LETTERS)
    assert letter["reason"] == sample["reason"]
    assert letter["detail"]
    assert letter["value"] == outcome.rows(BRONZE_EVENTS)[0]["value"]
