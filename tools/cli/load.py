"""The load of simulated players: one container of the simulator, which ends by itself."""

import json
import os
from dataclasses import dataclass

from tools.stack import StackError, compose, run

_RATE = "--rate"
_CONTAINER = "load"


@dataclass(frozen=True, slots=True)
class RunningLoad:
    """The load that runs: events per second, as the simulator was started with."""

    rate: int


def container_name() -> str:
    """The name of the simulator's container."""
    return f"{os.environ.get('COMPOSE_PROJECT_NAME', 'gamelake')}-{_CONTAINER}"


def current() -> RunningLoad | None:
    """The load that runs, if any."""
    try:
        found = json.loads(run(("docker", "inspect", container_name())))[0]
    except StackError:
        return None
    if not found["State"]["Running"]:
        return None
    arguments = found["Config"]["Cmd"]
    return RunningLoad(int(arguments[arguments.index(_RATE) + 1]))


def start(rate: int, *, games: int, minutes: int) -> None:
    """Replace the load by one of `rate` events per second, for so many minutes.

    Raises:
        StackError: the container does not start.
    """
    stop()
    simulator = ("python", "-m", "tools.simulator", "--target", "http", _RATE, str(rate))
    bounds = ("--games", str(games), "--events", str(rate * minutes * 60))
    compose(
        "run", "--rm", "--no-deps", "--no-TTY", "--detach", "--name", container_name(), "tools", *simulator, *bounds
    )  # fmt: skip


def stop() -> bool:
    """End the load; whether there was any."""
    if current() is None:
        return False
    run(("docker", "stop", container_name()))
    return True
