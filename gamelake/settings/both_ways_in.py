"""The settings of both ways in, when they run in one process."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gamelake.settings.files import FilesSettings
from gamelake.settings.ingest import IngestSettings
from gamelake.settings.shared import shared


@dataclass(frozen=True, slots=True, kw_only=True)
class BothWaysInSettings:
    """What each job is to know: the same but for its telemetry, which each has for itself."""

    events: IngestSettings
    files: FilesSettings

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(
            events=IngestSettings.from_env(shared(variables, "events", 0)),
            files=FilesSettings.from_env(shared(variables, "files", 1)),
        )
