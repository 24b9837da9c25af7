"""The settings of the job that validates a day."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.objects.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings:
    """The settings of the job that validates a day; `rules` is their folder, None for no rules."""

    tables: TableSettings
    rules: Path | None = None

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(tables=TableSettings.from_env(variables), rules=Environment(variables).path("GAMELAKE_RULES"))
