"""Typed reading of environment variables; errors name the variable and what is wrong with it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gamelake.model.choices import Chosen, chosen
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Kill


class Environment:
    """Environment variables, read by name with bounds and defaults.

    All methods raise SettingsError, which names the variable.

    Example:
        >>> env = Environment({"GAMELAKE_DEDUP_MAX_EVENTS": "5000"})
        >>> env.whole("GAMELAKE_DEDUP_MAX_EVENTS", default=1000, least=1, most=10**6)
        5000
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def required(self, name: str) -> str:
        """Return a variable that has no default."""
        value = self._variables.get(name, "")
        if not value:
            raise SettingsError(f"{name} is not set; docs/settings.md says what it is for")
        return value

    def optional(self, name: str, default: str) -> str:
        """Return a variable, or its default if it is not set or empty."""
        return self._variables.get(name) or default

    def path(self, name: str) -> Path | None:
        """Return a file or folder; None if the variable is not set."""
        value = self.optional(name, "")
        return Path(value) if value else None

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """Return a number within bounds."""
        text = self.optional(name, str(default))
        try:
            value = float(text)
        except ValueError as error:
            raise SettingsError(f"{name} is '{text}', which is not a number") from error
        if not least <= value <= most:
            raise SettingsError(f"{name} is {text}; it must be from {least:g} to {most:g}")
        return value

    def choice(self, name: str, known: Iterable[Chosen], default: Chosen) -> Chosen:
        """Return one of some names."""
        text = self.optional(name, default)
        try:
            return chosen(known, text)
        except ValueError as error:
            raise SettingsError(f"{name} is '{text}'; {error}") from error

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        value = self.number(name, default, least, most)
        if value != int(value):
            raise SettingsError(f"{name} is {value}; it must be a whole number")
        return int(value)


def failpoint_setting(env: Environment) -> Kill | None:
    """Return the step at which a test has the process killed, by GAMELAKE_FAILPOINT; None if it is not set.

    Raises:
        SettingsError: there is no such step.
    """
    text = env.optional("GAMELAKE_FAILPOINT", "")
    try:
        return Kill.parse(text) if text else None
    except ValueError as error:
        raise SettingsError(f"GAMELAKE_FAILPOINT is '{text}': {error}") from error
