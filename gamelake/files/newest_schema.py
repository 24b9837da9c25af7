"""The schema that files are read by: the newest that is registered for the topic of events."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from gamelake.errors import RegistryUnavailableError
from gamelake.wire.registry import Registry

log = logging.getLogger(__name__)


@dataclass
class NewestSchema:
    """Asks the registry now and then; while it is silent, the last answer counts."""

    registry: Registry
    subject: str
    ask_again_after: timedelta = timedelta(seconds=30)
    clock: Callable[[], float] = time.monotonic
    _known: int | None = None
    _until: float = field(default=float("-inf"))

    def id(self) -> int:
        """The id of the newest version.

        Raises:
            UnknownSchemaError: no version is registered.
            RegistryUnavailableError: the registry has never answered.
        """
        if self.clock() >= self._until:
            self._ask()
        assert self._known is not None  # noqa: S101 # else asking has raised
        return self._known

    def _ask(self) -> None:
        try:
            self._known = self.registry.newest(self.subject)
        except RegistryUnavailableError as error:
            if self._known is None:
                raise
            log.warning("files are read by schema %d, as before: %s", self._known, error)
        self._until = self.clock() + self.ask_again_after.total_seconds()
