"""Chooses the schema that files are read with: the newest usable one of the subject."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import ContractError, RegistryUnavailableError, SchemaError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.schemas.compiler import message_at
from gamelake.schemas.decoder import MessageDecoder
from gamelake.schemas.event_schemas import FIRST_MESSAGE
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import MissingSchema, SchemaCache
from gamelake.streaming.files.reading import FileReader
from gamelake.streaming.outages import OUTAGES
from gamelake.streaming.plan import TaskPlan

log = event_logger(__name__)


def file_reader(reading: TaskPlan, schema_id: int) -> FileReader:
    """Create a reader of files with the events of a schema.

    Args:
        reading: has the registry and the limits of schemas.
        schema_id: of the schema in the registry.

    Raises:
        SchemaError: the schema can't be used: it does not compile, exceeds a limit, or has a kind of field that files
            can't have.
        RegistryUnavailableError: the registry does not respond.
    """
    registry, store = SchemaRegistry(reading.registry_url), Store(reading.lakehouse)
    schema = SchemaCache(registry, store, reading.schema_wait, limits=reading.schema_limits).get(schema_id)
    if isinstance(schema, MissingSchema):
        # The subject has this id, so a registry that does not find it now will find it later.
        is_invalid = schema.reason is DeadLetterReason.INVALID_SCHEMA
        raise (SchemaError if is_invalid else RegistryUnavailableError)(schema.detail)
    try:
        message = message_at(schema, FIRST_MESSAGE)
        # Raises if the schema's columns would exceed the limits.
        MessageDecoder(message, reading.schema_limits)
        return FileReader(message, schema_id)
    except (SchemaError, *OUTAGES):
        raise
    except Exception as error:
        # Any other error of a library is the fault of the schema.
        raise SchemaError(f"files can't be read with the schema: {type(error).__name__}: {error}") from error


class Subjects(Protocol):
    """The part of a `SchemaRegistry` that `NewestSchema` uses.

    `NewestSchema` calls `newest` once per refresh, and `older` only if the newest schema can't be used; both on the
    thread of the batch.
    """

    def newest(self, subject: str) -> int:
        """Return the id of the newest version.

        Raises:
            UnknownSchemaError: no version is registered.
            RegistryUnavailableError: the registry does not respond.
        """

    def older(self, subject: str) -> Iterator[int]:
        """Yield the ids of the other versions, from new to old.

        Raises:
            RegistryUnavailableError: the registry does not respond.
        """


@dataclass
class NewestSchema:
    """The id of the newest usable schema; for one thread.

    If the registry does not respond, or a newer schema can't be used, the last known id remains.

    Attributes:
        registry: the schema registry.
        subject: of the schemas.
        check: tries a schema; raises SchemaError if it can't be used.
        cached_for: the time after which the registry is queried again.
        clock: returns a time in seconds that never decreases.
    """

    registry: Subjects
    subject: str
    check: Callable[[int], object]
    cached_for: timedelta = timedelta(seconds=30)
    clock: Callable[[], float] = time.monotonic
    _known: int | None = None
    _newest: int | None = None
    _until: float = field(default=float("-inf"))

    def id(self) -> int:
        """Return the id of the newest version that can be used.

        Raises:
            UnknownSchemaError: no version is registered.
            ContractError: no registered version can be used.
            RegistryUnavailableError: the registry does not respond, and no id is known.
        """
        if self.clock() >= self._until:
            self._refresh()
        assert self._known is not None  # noqa: S101 # else _refresh has raised
        return self._known

    @property
    def unusable(self) -> int:
        """The id of the newest version if it can't be used, so that files are read with an older one; else 0."""
        return 0 if self._newest is None or self._newest == self._known else self._newest

    def _refresh(self) -> None:
        try:
            newest = self.registry.newest(self.subject)
            if newest != self._newest:
                self._known = self._usable(newest)
                self._newest = newest
        except RegistryUnavailableError as error:
            if self._known is None:
                raise
            log.warning(
                "registry_unavailable", schema=self._known, error=error, action="files are still read with this schema"
            )
        self._until = self.clock() + self.cached_for.total_seconds()

    def _usable(self, newest: int) -> int:
        problem = self._problem(newest)
        if not problem:
            return newest
        older = (each for each in self.registry.older(self.subject) if not self._problem(each))
        used = self._known or next(older, None)
        if used is None:
            raise ContractError(
                f"no schema of {self.subject} can be used to read files; register one that can. The newest one, "
                f"{newest}: {problem}"
            )
        log.error(
            "newest_schema_unusable",
            schema=newest,
            error=problem,
            action=f"files are read with schema {used}; register a version that can be used",
        )
        return used

    def _problem(self, schema_id: int) -> str:
        try:
            self.check(schema_id)
        except SchemaError as error:
            return str(error)
        return ""
