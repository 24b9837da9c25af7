"""`gamelake switchboard`: switches load and faults of the running stack for the portal, until Ctrl-C."""

import signal
import time
from collections.abc import Callable
from threading import Event, Lock

from gamelake.observability.faults import fault_named, load_faults
from services.portal.switchboard import SwitchStates
from tools.cli.faults import FAULTS, switch, switch_of
from tools.cli.load import load, set_load
from tools.embedded.service import REPOSITORY
from tools.stack import containers, ports
from tools.switchboard import switchboard

# The stack's portal sees its folder (compose/compose.observability.yaml).
SOCKET = REPOSITORY / "build/switchboard/socket/switchboard.sock"
# Each reading asks docker several times, and an open page asks again every few seconds.
_FRESH_SECONDS = 3.0


class StackSwitches:
    """The switches of the running stack; its containers and files have the states."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._faults = load_faults(FAULTS)
        self._clock = clock
        self._reading = Lock()
        self._last: tuple[float, SwitchStates] | None = None

    def states(self) -> SwitchStates:
        """Return the load and the faults that are on, at most a few seconds old.

        Raises:
            StartupError: the stack does not run.
            StackError: docker is not available.
        """
        with self._reading:
            if self._last is None or self._clock() - self._last[0] > _FRESH_SECONDS:
                running = containers()
                on = tuple(name for name, each in self._faults.items() if switch_of(each, running).is_on())
                self._last = self._clock(), SwitchStates(load=load() or 0, faults=on)
            return self._last[1]

    def switch(self, fault: str, *, on: bool) -> None:
        """Switch a fault on or off.

        Raises:
            ContractError: there is no such fault.
            StartupError: the stack does not run.
            StackError: it could not be switched.
        """
        switch(fault_named(self._faults, fault), containers(), on=on)
        self._forget()

    def set_load(self, rate: int) -> None:
        """Replace the load, which ends by itself after an hour.

        Raises:
            StackError: it could not be started or stopped.
        """
        set_load(rate)
        self._forget()

    def _forget(self) -> None:
        with self._reading:
            self._last = None


def serve() -> None:
    """Serve until SIGINT or SIGTERM; what is on then stays on, and is named.

    Raises:
        StartupError: the stack does not run, or another switchboard does.
    """
    switches = StackSwitches()
    switches.states()
    ended = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with switchboard(SOCKET, switches):
        page = f"http://127.0.0.1:{ports()['PORTAL_BROWSER_PORT']}/practice"
        print(f"{page} has the switches until Ctrl-C.", flush=True)
        ended.wait()
    states = switches.states()
    if states.faults:
        print(f"still on: {', '.join(states.faults)}; gamelake fault off ends all.", flush=True)
    if states.load:
        print(f"still on: a load of {states.load:,} events/s; gamelake load stop ends it.", flush=True)
