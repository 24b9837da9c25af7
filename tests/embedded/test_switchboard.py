"""The portal switches load and faults through a program at a Unix socket, and can ask it for nothing else."""

import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from gamelake.model.errors import StartupError
from gamelake.observability.faults import load_faults
from services.portal.app import PortalApp
from services.portal.figures import figure_source
from services.portal.metrics import metrics_of_process
from services.portal.questions import Questions
from services.portal.settings import PortalSettings
from services.portal.switchboard import Switchboard, SwitchboardUnavailableError, SwitchingFailedError, SwitchStates
from tools.embedded.service import REPOSITORY
from tools.switchboard import switchboard

FAULTS = REPOSITORY / "monitoring/faults.yaml"
OWN = {"host": "127.0.0.1:8088"}


class Lamps:
    """Switches that switch nothing else: a platform of one load and the names of faults."""

    def __init__(self) -> None:
        self.on: set[str] = set()
        self.load = 0
        self.at_once = 0

    def states(self) -> SwitchStates:
        return SwitchStates(load=self.load, faults=tuple(sorted(self.on)))

    def switch(self, fault: str, *, on: bool) -> None:
        """Switch it; one that is not in the file is refused, as by the stack."""
        if fault not in load_faults(FAULTS):
            raise StartupError(f"there is no fault '{fault}'")
        self.at_once += 1
        assert self.at_once == 1
        (self.on.add if on else self.on.discard)(fault)
        self.at_once -= 1

    def set_load(self, rate: int) -> None:
        self.load = rate


@pytest.fixture
def socket_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that is short enough for a socket."""
    return tmp_path_factory.mktemp("s") / "board" / "socket" / "s.sock"


@pytest.fixture
def lamps(socket_file: Path) -> Iterator[Lamps]:
    made = Lamps()
    with switchboard(socket_file, made):
        yield made


@pytest.fixture
def portal(socket_file: Path) -> PortalApp:
    """A portal of which the switchboard may run or not."""
    settings = replace(PortalSettings.from_env({}), faults=FAULTS, switchboard=socket_file)
    return PortalApp(settings, figure_source(settings), Questions(settings), metrics_of_process())


def post(portal: PortalApp, path: str, more: Mapping[str, str] = {}) -> int:
    """The status of the response to a form."""
    return int(portal.respond("POST", path, {**OWN, **more}).status)


def test_a_button_switches_and_leads_back_to_the_page(lamps: Lamps, portal: PortalApp) -> None:
    response = portal.respond("POST", "/faults/gateway-down/on", OWN)

    assert response.status == 303
    assert dict(response.more)["location"] == "/practice"
    assert lamps.on == {"gateway-down"}
    assert "Switch off: The gateway is down" in portal.respond("GET", "/practice", OWN).body
    assert post(portal, "/load/200") == 303
    assert lamps.load == 200
    assert post(portal, "/faults/gateway-down/off") == 303
    assert post(portal, "/load/0") == 303
    assert (lamps.on, lamps.load) == (set(), 0)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/faults/gateway-down/on", {"sec-fetch-site": "cross-site"}, 403),
        ("/load/200", {"origin": "https://example.com"}, 403),
        ("/load/200", {"host": "rebound.example.com"}, 421),
        ("/load/201", {}, 404),
        ("/load/-1", {}, 404),
        ("/faults/no-such-fault/on", {}, 404),
        ("/faults/gateway-down/destroy", {}, 404),
        ("/faults/../load/200", {}, 404),
    ],
)
def test_nothing_is_switched_for_another_site_or_by_another_path(
    lamps: Lamps, portal: PortalApp, path: str, headers: Mapping[str, str], status: int
) -> None:
    assert post(portal, path, headers) == status
    assert (lamps.on, lamps.load) == (set(), 0)


def test_a_link_switches_nothing(lamps: Lamps, portal: PortalApp) -> None:
    assert portal.respond("GET", "/load/200", OWN).status == 405
    assert lamps.load == 0


def test_without_the_program_the_page_is_there_and_a_button_says_what_is_missing(portal: PortalApp) -> None:
    assert "<code>gamelake switchboard</code>" in portal.respond("GET", "/practice", OWN).body

    response = portal.respond("POST", "/load/200", OWN)

    assert response.status == 503
    assert "gamelake switchboard does not run" in response.body


@pytest.mark.parametrize("fault", ["UP", "unknown", "../load/200", ""])
@pytest.mark.usefixtures("lamps")
def test_the_program_itself_refuses_an_unknown_fault(socket_file: Path, fault: str) -> None:
    with pytest.raises(SwitchingFailedError, match="there is no "):
        Switchboard(socket_file).switch(fault, on=True)


@pytest.mark.parametrize("rate", [201, -1, 10**20])
def test_the_program_itself_refuses_an_unknown_load(lamps: Lamps, socket_file: Path, rate: int) -> None:
    with pytest.raises(SwitchingFailedError, match="there is no such switch"):
        Switchboard(socket_file).set_load(rate)

    assert lamps.load == 0


@pytest.mark.usefixtures("lamps")
def test_a_client_that_sends_nothing_delays_no_other(socket_file: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(str(socket_file))

        assert Switchboard(socket_file).states() == SwitchStates(load=0, faults=())


@pytest.mark.usefixtures("lamps")
def test_clients_that_come_together_are_all_accepted(socket_file: Path) -> None:
    with ExitStack() as clients:
        for _ in range(100):
            client = clients.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            # As the portal has: without a timeout, it would wait.
            client.settimeout(60)
            client.connect(str(socket_file))


def test_changes_happen_one_after_the_other(lamps: Lamps, socket_file: Path) -> None:
    names = list(load_faults(FAULTS))[:8]
    together = Barrier(len(names))

    def change(name: str) -> None:
        together.wait()
        Switchboard(socket_file).switch(name, on=True)

    threads = [Thread(target=change, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert lamps.on == set(names)


def test_the_socket_is_there_while_the_program_runs_and_its_folder_is_the_users_alone(socket_file: Path) -> None:
    with switchboard(socket_file, Lamps()):
        assert stat.S_IMODE(socket_file.parent.parent.stat().st_mode) == 0o700
        # Another user's portal connects, whose container has the folder.
        assert stat.S_IMODE(socket_file.stat().st_mode) == 0o666

    assert not socket_file.exists()
    with pytest.raises(SwitchboardUnavailableError):
        Switchboard(socket_file).states()


def test_the_socket_of_a_killed_program_is_replaced_and_that_of_a_running_one_refused(socket_file: Path) -> None:
    socket_file.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(socket_file))

    with switchboard(socket_file, Lamps()):
        with pytest.raises(StartupError, match="another switchboard serves"), switchboard(socket_file, Lamps()):
            pass
        assert Switchboard(socket_file).states().load == 0


def test_a_path_that_is_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 100) / "socket" / "s.sock"

    with pytest.raises(StartupError, match="longer than 103 bytes"), switchboard(path, Lamps()):
        pass
