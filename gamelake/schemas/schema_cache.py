"""Compiled schemas by id, cached in memory and, for all jobs and for ever, in the lakehouse.

An id never changes its meaning, so jobs decode the ids that the lakehouse has seen also while the registry is down.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.environment import Environment
from gamelake.model.errors import RegistryUnavailableError, SchemaError, UnknownSchemaError
from gamelake.schemas.compiler import compile_sources
from gamelake.schemas.limits import SchemaLimits, check_size
from gamelake.schemas.registry import SchemaSource
from gamelake.storage.store import Store

_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=2)
_REGISTRATION_TIME = timedelta(seconds=1)
_OUTAGE_PAUSE = timedelta(seconds=5)
_FOR_EVER = timedelta.max
_FOLDER = "_gamelake/schemas"


class SchemaSourceById(Protocol):
    """What the schema cache needs of a `SchemaRegistry`."""

    def source(self, schema_id: int) -> SchemaSource:
        """The source of a schema; raises SchemaError or RegistryUnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaWait:
    """How long the decoder waits for a missing schema.

    Attributes:
        patience: the longest wait for one schema.
        ask_again_after: after a wait without success, so long without another wait.
    """

    patience: timedelta = timedelta(seconds=10)
    ask_again_after: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class MissingSchema:
    """Why there is no schema for an id."""

    reason: DeadLetterReason
    detail: str


class SchemaCache:
    """Compiled schemas by id: in memory, else in the lakehouse, else from the registry.

    Only the first missing id is waited for. For `ask_again_after` from then on, each other missing id is requested
    once, or not at all if the registry did not answer: a stream of invented ids must not delay the good records.
    """

    def __init__(
        self,
        registry: SchemaSourceById,
        store: Store,
        wait: SchemaWait,
        clock: Callable[[], float] = time.monotonic,
        limits: SchemaLimits | None = None,
    ) -> None:
        self._registry = registry
        self._limits = limits or SchemaLimits()
        self._store = store
        self._wait = wait
        self._clock = clock
        self._compiled: dict[int, FileDescriptorSet] = {}
        self._missing: dict[int, tuple[float, MissingSchema]] = {}
        self._impatient_until = float("-inf")
        self._silent_until = float("-inf")

    def get(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        """The compiled schema, or why there is none."""
        if schema_id not in self._compiled:
            kept = self._store.get(schema_path(schema_id))
            found = FileDescriptorSet.FromString(kept) if kept else self._from_registry(schema_id)
            if isinstance(found, MissingSchema):
                return found
            self._compiled[schema_id] = found
        return self._compiled[schema_id]

    def _from_registry(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        until, missing = self._missing.get(schema_id, (float("-inf"), None))
        if missing and self._clock() < until:
            return missing
        found = self._ask_patiently(schema_id)
        if isinstance(found, MissingSchema):
            self._missing[schema_id] = (self._until_next(found.reason), found)
        else:
            self._store.put(schema_path(schema_id), found.SerializeToString())
        return found

    def _until_next(self, reason: DeadLetterReason) -> float:
        outage = reason is DeadLetterReason.SCHEMA_UNAVAILABLE
        return self._clock() + min(self._wait.ask_again_after, _OUTAGE_PAUSE if outage else _FOR_EVER).total_seconds()

    def _ask_patiently(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        if self._clock() < self._silent_until:
            return MissingSchema(DeadLetterReason.SCHEMA_UNAVAILABLE, "the registry did not answer a moment ago")
        started, pause = self._clock(), _FIRST_PAUSE
        while isinstance(answer := self._ask(schema_id), MissingSchema):
            if answer.reason is DeadLetterReason.INVALID_SCHEMA:
                return answer  # an id never changes its meaning, so waiting would not help
            unavailable = answer.reason is DeadLetterReason.SCHEMA_UNAVAILABLE
            # "No such schema" is an answer: a short wait is enough for a schema that is just being registered.
            patience = self._wait.patience if unavailable else min(self._wait.patience, _REGISTRATION_TIME)
            waited = self._clock() - started + pause.total_seconds()
            if self._clock() < self._impatient_until or waited > patience.total_seconds():
                self._give_up(answer.reason)
                return answer
            time.sleep(pause.total_seconds())
            pause = min(pause * 2, _LONGEST_PAUSE)
        return answer

    def _give_up(self, reason: DeadLetterReason) -> None:
        if self._clock() >= self._impatient_until:
            self._impatient_until = self._clock() + self._wait.ask_again_after.total_seconds()
        if reason is DeadLetterReason.SCHEMA_UNAVAILABLE:
            self._silent_until = self._until_next(reason)

    def _ask(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        try:
            source = self._registry.source(schema_id)
            check_size(source.texts.values(), self._limits)
            return compile_sources(source.texts, source.root)
        except RegistryUnavailableError as error:
            return MissingSchema(DeadLetterReason.SCHEMA_UNAVAILABLE, str(error))
        except UnknownSchemaError as error:
            return MissingSchema(DeadLetterReason.UNKNOWN_SCHEMA, str(error))
        except SchemaError as error:
            return MissingSchema(DeadLetterReason.INVALID_SCHEMA, str(error))


def kept_schemas(store: Store) -> list[tuple[int, bytes]]:
    """The compiled schemas in a lakehouse, as (id, descriptors), by ascending id."""
    numbers = sorted(int(path.rsplit("/", 1)[-1].split(".")[0]) for path in store.paths(_FOLDER))
    kept = ((number, store.get(schema_path(number))) for number in numbers)
    return [(number, content) for number, content in kept if content is not None]


def schema_path(schema_id: int) -> str:
    """The path of a compiled schema in the lakehouse."""
    return f"{_FOLDER}/{schema_id}.binpb"


def schema_wait(env: Environment) -> SchemaWait:
    """Read how long a decoder waits for missing schemas.

    Raises:
        SettingsError: a variable is malformed.
    """
    return SchemaWait(
        patience=timedelta(seconds=env.number("GAMELAKE_SCHEMA_WAIT_SECONDS", 10, 0, 3_600)),
        ask_again_after=timedelta(seconds=env.number("GAMELAKE_SCHEMA_RETRY_SECONDS", 60, 0, 86_400)),
    )
