"""Runs the platform until Ctrl-C or SIGTERM: `python -m tools.dev`."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from watchfiles import Change, watch

from gamelake.model.errors import GamelakeError
from tools.dev.contract_gate import ContractGate, problems_of_contracts
from tools.dev.directory import occupied
from tools.dev.load import DevSwitches, LoadDial
from tools.dev.options import DIRECTORY, DevError, DevOptions, DevPaths, parse
from tools.dev.programs import programs
from tools.dev.running import Readiness, forget
from tools.dev.screen import DevScreen
from tools.dev.supervisor import Supervisor
from tools.embedded.ports import accepts_connections
from tools.embedded.service import CONTRACTS, REPOSITORY
from tools.switchboard import switchboard

OK, FAILED = 0, 1
_POLL_MILLISECONDS = 300
_CODE = ("gamelake", "jobs", "services", "tools")
_SUFFIXES = frozenset({".py", ".yaml", ".proto"})
# Processes of a killed parent end within this time, and so free their ports.
_SECONDS_TO_FREE_PORTS = 15.0
_QUERY = 'ENGINE=duckdb ON=dev Q="SELECT count(*) FROM silver.events"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Start everything, and supervise it until it is interrupted."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen = DevScreen()
    try:
        with occupied(DevPaths.under(options.directory).directory):
            _run(options, screen)
    except KeyboardInterrupt:
        return OK
    except GamelakeError as error:
        screen.rest()
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return OK


def _run(options: DevOptions, screen: DevScreen) -> None:
    _wait_for_ports(options)
    paths = DevPaths.under(options.directory)
    if problems := problems_of_contracts():
        raise DevError("\n".join(problems))
    dial = LoadDial(options.rate)
    # A socket's path has at most about a hundred bytes, whatever directory a person chooses for the data.
    with TemporaryDirectory(prefix="gamelake-") as folder:
        socket = Path(folder) / "portal" / "switchboard.sock"
        supervisor = Supervisor(programs(options, paths, dial, socket), screen.print_line)
        with switchboard(socket, DevSwitches(dial, supervisor)):
            _supervise(supervisor, options.first_port, paths, screen)


def _supervise(supervisor: Supervisor, first_port: int, paths: DevPaths, screen: DevScreen) -> None:
    gate = ContractGate(screen.print_line, problems_of_contracts)
    readiness = Readiness(first_port, paths.directory, CONTRACTS, screen.print_line)
    try:
        for changed in _changes():
            passed = gate.passed(changed)
            if supervisor.restart_changed(passed):
                readiness.will_change(passed)
            supervisor.poll()
            screen.show(supervisor.status())
            if supervisor.are_all_running and readiness.announce():
                screen.print_line(_next_steps(paths))
    finally:
        forget(paths.directory)
        # A second Ctrl-C, or what `make` sends after the terminal's, must not end this half way.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        screen.rest()
        screen.print_line("Stopping; the next start continues with the same data")
        supervisor.stop()


def _changes() -> Iterator[set[Path]]:
    """Files that have changed, since the last time; an empty set several times a second while none has."""
    folders = (*(REPOSITORY / name for name in _CODE), CONTRACTS)
    for changed in watch(
        *folders, watch_filter=_is_source, debounce=500, rust_timeout=_POLL_MILLISECONDS, yield_on_timeout=True
    ):
        yield {Path(name) for _, name in changed}


def _is_source(_: Change, name: str) -> bool:
    return Path(name).suffix in _SUFFIXES


def _wait_for_ports(options: DevOptions) -> None:
    latest = time.monotonic() + _SECONDS_TO_FREE_PORTS
    while taken := [port for port in options.ports.all if accepts_connections(port)]:
        if time.monotonic() > latest:
            raise DevError(
                f"another program listens on port {taken[0]} of this machine: end it, or choose other ports, such as "
                f"make dev FIRST_PORT={options.first_port + 100}"
            )
        time.sleep(0.2)


def _next_steps(paths: DevPaths) -> str:
    return (
        f"The games' keys are in {paths.directory / 'gateway' / 'keys.yaml'}, logs in {paths.directory / 'logs'}.\n"
        f"In another terminal: {example_query(paths.directory)}. End with Ctrl-C."
    )


def example_query(directory: Path) -> str:
    """Return a command that reads the tables of a directory."""
    # ON=dev means the default directory.
    lakehouse = DevPaths(directory).lakehouse.uri
    other = "" if directory == DIRECTORY else f"GAMELAKE_LAKEHOUSE={shlex.quote(lakehouse)} "
    return f"make sql {other}{_QUERY}"


if __name__ == "__main__":
    sys.exit(main())
