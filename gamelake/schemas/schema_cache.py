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
from gamelake.objects.store import Store
from gamelake.schemas.compiler import compile_sources
from gamelake.schemas.limits import SchemaLimits, check_size
from gamelake.schemas.registry import SchemaSource

_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=2)
_REGISTRATION_TIME = timedelta(seconds=1)
_OUTAGE_PAUSE = timedelta(seconds=5)
_FOR_EVER = timedelta.max
# The share of each window that requests for missing ids may take.
_BUDGET, _WINDOW = timedelta(seconds=1), timedelta(seconds=10)
# A few hundred bytes each.
_MOST_MISSING = 10_000
_FOLDER = "_gamelake/schemas"


class SchemaSourceById(Protocol):
    """The part of `SchemaRegistry` that the schema cache uses."""

    def source(self, schema_id: int) -> SchemaSource:
        """Return the source of a schema; raise SchemaError or RegistryUnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaWait:
    """The limits of the decoder's wait for a missing schema.

    Attributes:
        patience: the longest wait for one schema.
        ask_again_after: how long the decoder does not wait again after a wait without success.
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

    The decoder waits only for the first missing id. During the next `ask_again_after` it requests each other missing id
    once, or not at all if the registry did not answer, or if the requests for all of them would take more than a
    tenth of the time: a stream of invented ids must not delay the good records.
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
        self._window_began = float("-inf")
        # Seconds of the window in which missing ids were looked up without a patient wait.
        self._spent, self._has_waited = 0.0, False
        self._impatient_until = float("-inf")
        self._silent_until = float("-inf")

    def get(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        """Return the compiled schema, or the reason why it is missing."""
        if schema_id not in self._compiled:
            found = self._known_missing(schema_id) or self._within_budget(schema_id)
            if isinstance(found, MissingSchema):
                return found
            self._compiled[schema_id] = found
        return self._compiled[schema_id]

    def _known_missing(self, schema_id: int) -> MissingSchema | None:
        until, missing = self._missing.get(schema_id, (float("-inf"), None))
        return missing if self._clock() < until else None

    def _within_budget(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        """Look a schema up, unless missing ones have taken too much time just now."""
        started = self._clock()
        if started - self._window_began > _WINDOW.total_seconds():
            self._window_began, self._spent = started, 0.0
        if self._spent >= _BUDGET.total_seconds():
            return MissingSchema(DeadLetterReason.SCHEMA_UNAVAILABLE, "not looked up: too many unknown ids came")
        kept = self._store.get(schema_path(schema_id))
        found = FileDescriptorSet.FromString(kept) if kept else self._from_registry(schema_id)
        if isinstance(found, MissingSchema):
            self._spent += 0 if self._has_waited else self._clock() - started
            self._remember(schema_id, found)
        return found

    def _remember(self, schema_id: int, missing: MissingSchema) -> None:
        self._missing.pop(schema_id, None)
        self._missing[schema_id] = (self._until_next(missing.reason), missing)
        if len(self._missing) > _MOST_MISSING:
            del self._missing[next(iter(self._missing))]

    def _from_registry(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        found = self._ask_patiently(schema_id)
        if not isinstance(found, MissingSchema):
            self._store.put(schema_path(schema_id), found.SerializeToString())
        return found

    def _until_next(self, reason: DeadLetterReason) -> float:
        outage = reason is DeadLetterReason.SCHEMA_UNAVAILABLE
        return self._clock() + min(self._wait.ask_again_after, _OUTAGE_PAUSE if outage else _FOR_EVER).total_seconds()

    def _ask_patiently(self, schema_id: int) -> FileDescriptorSet | MissingSchema:
        self._has_waited = False
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
            self._has_waited = True
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
    """Return the compiled schemas in a lakehouse, as (id, descriptors), by ascending id."""
    kept = ((number, store.get(schema_path(number))) for number in kept_schema_ids(store))
    return [(number, content) for number, content in kept if content is not None]


def kept_schema_ids(store: Store) -> list[int]:
    """Return the ids of the compiled schemas in a lakehouse, ascending."""
    return sorted(int(path.rsplit("/", 1)[-1].split(".")[0]) for path in store.paths(_FOLDER))


def schema_path(schema_id: int) -> str:
    """Return the path of a compiled schema in the lakehouse."""
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
