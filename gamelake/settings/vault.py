"""Where personal data is kept, and the keys to it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.settings.environment import Environment
from gamelake.vault.access import VaultAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultKeysSettings:
    """The file of the keys to personal data, without which no place is of use."""

    keys_file: Path

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing.
        """
        return cls(keys_file=Path(Environment(variables).required("GAMELAKE_VAULT_KEYS_FILE")))


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSettings:
    """Where personal data is kept, and the file of the keys to it."""

    access: VaultAccess
    keys_file: Path

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        place = env.required("GAMELAKE_VAULT")
        return cls(
            access=VaultAccess.of(place, env.optional("GAMELAKE_VAULT_CREDENTIALS_FILE", "")),
            keys_file=VaultKeysSettings.from_env(variables).keys_file,
        )
