"""What the registry calls the schemas that rows came in, each asked for once."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gamelake.errors import GamelakeError
from gamelake.lineage.flow import SchemaVersion

log = logging.getLogger(__name__)


class Versions(Protocol):
    """What a registry is to the lineage."""

    def versions(self, schema_id: int) -> list[tuple[str, int]]:
        """The subjects that have a schema, each with its version there."""


@dataclass(slots=True)
class RegisteredVersions:
    """The versions of one topic's schemas; an id may have several names, of which that of the topic is preferred."""

    registry: Versions
    topic: str
    _known: dict[int, SchemaVersion] = field(default_factory=dict)

    def __call__(self, ids: Collection[int]) -> Mapping[int, SchemaVersion]:
        """The versions by id; a registry that is silent is not waited for, and asked again another time."""
        try:
            for each in sorted(set(ids) - self._known.keys()):
                self._ask(each)
        except GamelakeError as error:
            log.info("lineage tells no versions of schemas for now: %s", error)
        return {each: self._known[each] for each in ids if each in self._known}

    def _ask(self, schema_id: int) -> None:
        found = [SchemaVersion(*each) for each in self.registry.versions(schema_id)]
        found.sort(key=lambda each: (each.subject != f"{self.topic}-value", each.subject, each.version))
        if found:
            self._known[schema_id] = found[0]
