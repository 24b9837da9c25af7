"""Schemas by id: asked of the registry once, then kept in memory and in the lakehouse for ever.

An id never changes its meaning, so a registry that is down stops no id that any job of the lakehouse has seen.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.contracts.reasons import DeadLetterReason
from gamelake.errors import RegistryUnavailableError, SchemaError
from gamelake.lake.store import Store
from gamelake.wire.compiler import compile_sources
from gamelake.wire.registry import SchemaSource

_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=2)


class SchemaSourceById(Protocol):
    """What `Registry` is to the schema cache."""

    def source(self, schema_id: int) -> SchemaSource:
        """The source of a schema; raises SchemaError or RegistryUnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaWait:
    """How long records wait for a schema that can't be had, and for how long the answer then stands."""

    patience: timedelta = timedelta(seconds=10)
    ask_again_after: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class MissingSchema:
    """Why there is no schema for an id."""

    reason: DeadLetterReason
    detail: str


class SchemaCache:
    """Compiled schemas by id: in memory, else in the lakehouse, else from the registry."""

    def __init__(
        self, registry: SchemaSourceById, store: Store, wait: SchemaWait, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry = registry
        self._store = store
        self._wait = wait
        self._clock = clock
        self._compiled: dict[int, FileDescriptorSet] = {}
        self._missing: dict[int, tuple[float, MissingSchema]] = {}

    def get(self, schema_id: int, deadline: float) -> FileDescriptorSet | MissingSchema:
        """The compiled schema, or why there is none by the deadline (on this cache's clock)."""
        if schema_id not in self._compiled:
            kept = self._store.get(schema_path(schema_id))
            found = FileDescriptorSet.FromString(kept) if kept else self._from_registry(schema_id, deadline)
            if isinstance(found, MissingSchema):
                return found
            self._compiled[schema_id] = found
        return self._compiled[schema_id]

    def deadline(self) -> float:
        """When patience that starts now ends; one deadline is shared by all ids of a batch."""
        return self._clock() + self._wait.patience.total_seconds()

    def _from_registry(self, schema_id: int, deadline: float) -> FileDescriptorSet | MissingSchema:
        asked_at, missing = self._missing.get(schema_id, (float("-inf"), None))
        if missing and self._clock() - asked_at < self._wait.ask_again_after.total_seconds():
            return missing
        found = self._ask_until(schema_id, deadline)
        if isinstance(found, MissingSchema):
            self._missing[schema_id] = (self._clock(), found)
        else:
            self._store.put(schema_path(schema_id), found.SerializeToString())
        return found

    def _ask_until(self, schema_id: int, deadline: float) -> FileDescriptorSet | MissingSchema:
        pause = _FIRST_PAUSE
        while True:
            try:
                source = self._registry.source(schema_id)
            except SchemaError as error:
                answer = MissingSchema(DeadLetterReason.UNKNOWN_SCHEMA, str(error))
            except RegistryUnavailableError as error:
                answer = MissingSchema(DeadLetterReason.SCHEMA_UNAVAILABLE, str(error))
            else:
                return _compiled(source)
            if self._clock() + pause.total_seconds() > deadline:
                return answer
            time.sleep(pause.total_seconds())
            pause = min(pause * 2, _LONGEST_PAUSE)


def schema_path(schema_id: int) -> str:
    """Where the lakehouse keeps a compiled schema."""
    return f"_gamelake/schemas/{schema_id}.binpb"


def _compiled(source: SchemaSource) -> FileDescriptorSet | MissingSchema:
    try:
        return compile_sources(source.texts, source.root)
    except SchemaError as error:
        return MissingSchema(DeadLetterReason.INVALID_SCHEMA, str(error))
