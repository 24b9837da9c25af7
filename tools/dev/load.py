"""The load of `make dev`: simulated players whose rate the portal changes while everything runs."""

from typing import Protocol

from gamelake.model.errors import StartupError
from services.portal.switchboard import SwitchStates

PLAYERS = "players"


class LoadDial:
    """The events per second that the players send; 0 without players."""

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def is_on(self) -> bool:
        """Return True if there are players."""
        return self.rate > 0


class Restarts(Protocol):
    """Starts programs again."""

    def request_restart(self, name: str, reason: str) -> None:
        """Request that a program starts again; from any thread."""


class DevSwitches:
    """The switches of `make dev`: the load alone, as nothing here has alerts that a fault would set off."""

    def __init__(self, dial: LoadDial, restarts: Restarts) -> None:
        self._dial = dial
        self._restarts = restarts

    def states(self) -> SwitchStates:
        """Return the load."""
        return SwitchStates(load=self._dial.rate)

    def switch(self, fault: str, *, on: bool) -> None:
        """Refuse it.

        Raises:
            StartupError: always.
        """
        raise StartupError(f"make dev has no fault '{fault}': faults are those of the stack")

    def set_load(self, rate: int) -> None:
        """Restart the players with another rate, or stop them."""
        if rate == self._dial.rate:
            return
        self._dial.rate = rate
        self._restarts.request_restart(PLAYERS, f"with {rate:,} events/s")
