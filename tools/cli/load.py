"""The load of simulated players, and that of a fault: a container of the simulator each, which ends by itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tools.stack import StackError, compose, project_name, run

_RATE = "--rate"
LOAD = "load"
GAMES, MINUTES = 30, 60


@dataclass(frozen=True, slots=True)
class SimulatorContainer:
    """A container of the simulator, by the last part of its name."""

    name: str = LOAD

    @property
    def full_name(self) -> str:
        """The name of the container."""
        return f"{project_name()}-{self.name}"

    def rate(self) -> int | None:
        """Return the events per second with which it was started; None: it does not run."""
        try:
            found = json.loads(run(("docker", "inspect", self.full_name)))[0]
        except StackError:
            return None
        if not found["State"]["Running"]:
            return None
        arguments = found["Config"]["Cmd"]
        return int(arguments[arguments.index(_RATE) + 1])

    def start(self, rate: int, minutes: int, arguments: Sequence[str]) -> None:
        """Replace it by one that sends `rate` events per second, for a number of minutes.

        Raises:
            StackError: the container does not start.
        """
        self.stop()
        simulator = ("python", "-m", "tools.simulator", _RATE, str(rate), "--events", str(rate * minutes * 60))
        container = ("--rm", "--no-deps", "--no-TTY", "--detach", "--name", self.full_name)
        compose("run", *container, "tools", *simulator, *arguments)

    def stop(self) -> None:
        """End it, if it runs."""
        if self.rate() is not None:
            run(("docker", "stop", self.full_name))


def load() -> int | None:
    """Return the events per second of the load; None: there is none."""
    return SimulatorContainer().rate()


def set_load(rate: int, games: int = GAMES, minutes: int = MINUTES) -> None:
    """Replace the load by one of `rate` events per second, which ends by itself; 0 ends it.

    Raises:
        StackError: it could not be started or stopped.
    """
    container = SimulatorContainer()
    if rate:
        container.start(rate, minutes, ("--target", "http", "--games", str(games)))
    else:
        container.stop()
