"""Schemas by id: memory first, then the lakehouse, then the registry, and how long records wait for one."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import RegistryUnavailableError, UnknownSchemaError
from gamelake.schemas.decoder import Decoder
from gamelake.schemas.framing import frame_header
from gamelake.schemas.registry import SchemaSource
from gamelake.schemas.schema_cache import MissingSchema, SchemaCache, SchemaWait, schema_path
from tests.unit.schemas.protos import NO_WAIT, FakeRegistry, a_store, schema

_TEXT = schema('syntax = "proto3"; message Event { int32 number = 1; }')
_WAIT = SchemaWait(patience=timedelta(seconds=10), ask_again_after=timedelta(seconds=60))


@dataclass
class Clock:
    """A clock that advances by some seconds whenever it is read."""

    step: float = 0.0
    now: float = 1000.0

    def __call__(self) -> float:
        """Read the clock."""
        self.now += self.step
        return self.now


@dataclass
class LateRegistry(FakeRegistry):
    """A registry that has its schemas only from the n-th question on."""

    first_answer: int = 1
    errors: type[Exception] = UnknownSchemaError

    def source(self, schema_id: int) -> SchemaSource:
        """Answer as `Registry` does, once the time has come."""
        if len(self.asked) + 1 < self.first_answer:
            self.asked.append(schema_id)
            raise self.errors("not yet")
        return super().source(schema_id)


def test_a_schema_is_requested_once_and_cached_in_the_lakehouse(tmp_path: Path) -> None:
    registry, store = FakeRegistry({5: _TEXT}), a_store(tmp_path)
    cache = SchemaCache(registry, store, NO_WAIT)

    found = [cache.get(5) for _ in range(3)]

    assert registry.asked == [5]
    kept = FileDescriptorSet.FromString(store.get(schema_path(5)) or b"")
    assert found == [kept, kept, kept]
    assert kept.file[-1].message_type[0].name == "Event"


def test_a_registry_that_is_down_stops_no_id_that_any_job_has_seen(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    SchemaCache(FakeRegistry({5: _TEXT}), store, NO_WAIT).get(5)
    registry = FakeRegistry(is_down=True)

    found = SchemaCache(registry, store, NO_WAIT).get(5)

    assert isinstance(found, FileDescriptorSet)
    assert registry.asked == []


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (FakeRegistry(), DeadLetterReason.UNKNOWN_SCHEMA),
        (FakeRegistry(is_down=True), DeadLetterReason.SCHEMA_UNAVAILABLE),
        (FakeRegistry({5: schema("no schema at all")}), DeadLetterReason.INVALID_SCHEMA),
    ],
)
def test_the_detail_has_the_message_of_the_registry(
    registry: FakeRegistry, reason: DeadLetterReason, tmp_path: Path
) -> None:
    found = SchemaCache(registry, a_store(tmp_path), NO_WAIT, Clock()).get(5)

    assert isinstance(found, MissingSchema)
    assert found.reason is reason
    assert a_store(tmp_path).get(schema_path(5)) is None


@pytest.mark.parametrize("error", [UnknownSchemaError, RegistryUnavailableError])
def test_records_wait_for_a_schema_that_is_registered_a_little_later(error: type[Exception], tmp_path: Path) -> None:
    registry = LateRegistry({5: _TEXT}, first_answer=3, errors=error)

    found = SchemaCache(registry, a_store(tmp_path), _WAIT, Clock()).get(5)

    assert isinstance(found, FileDescriptorSet)
    assert registry.asked == [5, 5, 5]


def test_the_wait_ends_after_its_limit_and_its_failure_is_cached(tmp_path: Path) -> None:
    registry, clock = FakeRegistry(is_down=True), Clock(step=4)
    cache = SchemaCache(registry, a_store(tmp_path), _WAIT, clock)

    first = cache.get(5)
    asked = len(registry.asked)
    clock.step = 0
    again = cache.get(5)

    assert isinstance(first, MissingSchema)
    assert again == first
    assert 1 < asked < 5
    assert len(registry.asked) == asked


def test_an_id_that_the_registry_does_not_know_is_waited_for_briefly(tmp_path: Path) -> None:
    clock = Clock(step=0.3)
    started = clock.now

    found = SchemaCache(FakeRegistry(), a_store(tmp_path), _WAIT, clock).get(5)

    assert isinstance(found, MissingSchema)
    assert clock.now - started < _WAIT.patience.total_seconds() / 2


def test_only_the_first_missing_id_is_waited_for(tmp_path: Path) -> None:
    registry, clock = FakeRegistry(), Clock(step=0.3)
    cache = SchemaCache(registry, a_store(tmp_path), _WAIT, clock)
    cache.get(5)
    registry.asked.clear()
    clock.step = 0

    missing = [cache.get(schema_id) for schema_id in (6, 7, 8)]

    assert registry.asked == [6, 7, 8]
    assert {found.reason for found in missing if isinstance(found, MissingSchema)} == {DeadLetterReason.UNKNOWN_SCHEMA}


def test_a_registry_that_does_not_answer_is_not_asked_for_other_ids_for_a_while(tmp_path: Path) -> None:
    registry, clock = FakeRegistry({6: _TEXT}, is_down=True), Clock()
    wait = SchemaWait(patience=timedelta(0), ask_again_after=timedelta(seconds=60))
    cache = SchemaCache(registry, a_store(tmp_path), wait, clock)
    cache.get(5)
    registry.asked.clear()
    registry.is_down = False

    missing = cache.get(6)
    clock.now += 5
    found = cache.get(6)

    assert isinstance(missing, MissingSchema)
    assert missing.reason is DeadLetterReason.SCHEMA_UNAVAILABLE
    assert isinstance(found, FileDescriptorSet)
    assert registry.asked == [6]


def test_invented_ids_take_a_tenth_of_the_time_at_most(tmp_path: Path) -> None:
    registry, clock = FakeRegistry({9: _TEXT}), Clock()
    cache = SchemaCache(registry, a_store(tmp_path), NO_WAIT, clock)
    clock.step = 0.02

    for schema_id in range(1_000, 5_000):
        cache.get(schema_id)
    asked = len(registry.asked)
    clock.step = 0
    clock.now += 11
    found = cache.get(9)

    assert asked < 4_000 / 20
    assert isinstance(found, FileDescriptorSet)


def test_the_ids_that_most_records_have_are_looked_up_before_invented_ones(tmp_path: Path) -> None:
    registry, clock = FakeRegistry({9: _TEXT}), Clock(step=0.02)
    decoder = Decoder(SchemaCache(registry, a_store(tmp_path), NO_WAIT, clock))
    values = [frame_header(schema_id) for schema_id in range(1_000, 1_500)] + [frame_header(9)] * 2

    decoded = decoder.decode(pa.array(values, pa.binary()))

    assert [len(group.rows) for group in decoded.groups] == [2]
    assert set(decoded.rejects.reasons) == {DeadLetterReason.UNKNOWN_SCHEMA, DeadLetterReason.SCHEMA_UNAVAILABLE}


def test_a_missing_id_is_requested_again_after_its_pause(tmp_path: Path) -> None:
    registry, clock = FakeRegistry(), Clock(step=0.6)
    cache = SchemaCache(registry, a_store(tmp_path), _WAIT, clock)
    cache.get(5)
    registry.sources[5] = _TEXT
    clock.step = 0

    before = cache.get(5)
    clock.now += 61
    after = cache.get(5)

    assert isinstance(before, MissingSchema)
    assert isinstance(after, FileDescriptorSet)
