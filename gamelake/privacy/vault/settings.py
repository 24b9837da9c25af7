"""The settings of the vault."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.privacy.vault.access import VaultAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultKeysSettings:
    """The file of the vault's keys."""

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
    """The access to the vault, and the file of its keys."""

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
