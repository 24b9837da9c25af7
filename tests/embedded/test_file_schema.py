"""Files are read by the newest schema that can be used, whatever is registered after it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from gamelake.model.errors import ContractError, RegistryUnavailableError
from gamelake.objects.store import Location
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.registry import SchemaRegistry
from gamelake.streaming.files.file_schema import NewestSchema, file_reader
from gamelake.streaming.plan import TaskPlan
from tests.embedded.sending import contract_text
from tests.unit.streaming_files.task_runs import FileRuns
from tools.embedded import EmbeddedRegistry

_LIMITS = SchemaLimits(columns=100, source_bytes=50_000)
_MESSAGE = 'syntax = "proto3"; message GameEvent { string event_id = 1; %s }'
UNUSABLE = {
    "an unsupported kind": _MESSAGE % "bytes signature = 90;",
    "too many columns": _MESSAGE % " ".join(f"string field_{number} = {number + 2};" for number in range(200)),
    "too large": _MESSAGE % " ".join(f"string f_{number:0100d} = {number + 2};" for number in range(600)),
    "no end": _MESSAGE % "GameEvent inner = 90;",
    "no message": 'syntax = "proto3"; enum Kind { NONE = 0; }',
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a real registry, which takes any schema."""

    client: SchemaRegistryClient
    name: str
    reading: TaskPlan

    def register(self, text: str) -> int:
        """Register a version and return its id."""
        return int(self.client.register_schema(self.name, Schema(text, "PROTOBUF")))

    def newest(self, reading: TaskPlan | None = None) -> NewestSchema:
        """What a stream that starts now reads by; it asks the registry each time."""
        reading = reading or self.reading
        registry, clock = SchemaRegistry(reading.registry_url), count(0, 100).__next__
        return NewestSchema(registry, self.name, check=partial(file_reader, reading), clock=clock)


@pytest.fixture
def subject(registry: EmbeddedRegistry, tmp_path: Path) -> Iterator[Subject]:
    name = f"events-{uuid.uuid4().hex}-value"
    # A lakehouse of its own: that of the runs has a schema already.
    lakehouse = Location(uri=(tmp_path / "empty").as_uri())
    reading = replace(
        FileRuns(tmp_path).plan().reading, lakehouse=lakehouse, registry_url=registry.url, schema_limits=_LIMITS
    )
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.set_compatibility(name, "NONE")
        yield Subject(client, name, reading)


@pytest.mark.parametrize("problem", UNUSABLE)
def test_files_are_read_by_the_last_schema_that_can_be_used(subject: Subject, problem: str) -> None:
    subject.register(contract_text(2))
    good = subject.register(contract_text(3))
    running = subject.newest()
    assert running.id() == good

    bad = subject.register(UNUSABLE[problem])

    assert running.unusable == 0
    assert (running.id(), running.unusable) == (good, bad)
    assert subject.newest().id() == good
    newer = subject.register(_MESSAGE % "string event_name = 2;")
    assert newer != good
    assert (running.id(), running.unusable) == (newer, 0)


def test_an_unusable_schema_is_named_once(subject: Subject, caplog: pytest.LogCaptureFixture) -> None:
    good = subject.register(contract_text(3))
    bad = subject.register(UNUSABLE["an unsupported kind"])
    newest = subject.newest()

    assert {newest.id(), newest.id(), newest.id()} == {good}

    [record] = [each for each in caplog.records if "newest_schema_unusable" in each.getMessage()]
    assert str(bad) in record.getMessage()


def test_without_any_usable_schema_the_stream_says_which_one_to_register(subject: Subject) -> None:
    for text in UNUSABLE.values():
        subject.register(text)

    with pytest.raises(ContractError, match=rf"no schema of {subject.name} can be used to read files; register one"):
        subject.newest().id()


def test_a_registry_that_is_away_is_no_unusable_schema(subject: Subject) -> None:
    good = subject.register(contract_text(3))
    newest = subject.newest()
    assert newest.id() == good

    newest.registry = SchemaRegistry("http://127.0.0.1:1")

    assert newest.id() == good
    with pytest.raises(RegistryUnavailableError):
        subject.newest(replace(subject.reading, registry_url="http://127.0.0.1:1")).id()
