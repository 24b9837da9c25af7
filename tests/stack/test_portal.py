"""The stack's portal switches load and faults while the switchboard runs on the machine, and nothing otherwise."""

import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.eventually import eventually
from tests.stack.platform import ROOT, Stack
from tools.stack import AUTHORITY, COMPOSE, compose, page, ports

FAULT = "bad-rule"


@pytest.fixture(scope="module", autouse=True)
def portal(stack: Stack) -> Iterator[None]:
    """A running portal, as `make portal` starts it."""
    stack.await_health("prometheus")
    socket = ROOT / "build/switchboard/socket"
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    socket.mkdir(mode=0o755, exist_ok=True)
    compose("up", "--detach", "--wait", "--no-deps", "portal")
    yield
    compose("rm", "--force", "--stop", "portal")


@pytest.fixture
def switchboard() -> Iterator["subprocess.Popen[str]"]:
    """`gamelake switchboard` as an operator runs it."""
    command = (sys.executable, "-m", "gamelake", "switchboard")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert "has the switches until Ctrl-C" in running.stdout.readline()
            yield running
        finally:
            running.terminate()
            running.wait(60)


def press(path: str) -> int:
    """Post the form of a button, as the operator's browser does; gives the status of the response."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.load_cert_chain(COMPOSE / "certificates/operator.pem")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    address = f"https://127.0.0.1:{ports()['PORTAL_PORT']}{path}"
    try:
        with opener.open(urllib.request.Request(address, data=b"", method="POST"), timeout=200) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return int(refused.code)


def gamelake(*arguments: str) -> str:
    """The output of a command that succeeds."""
    command = (sys.executable, "-m", "gamelake", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def is_on() -> bool:
    """What the command line says of the fault."""
    return bool(json.loads(gamelake("fault", "--json", "show", FAULT))[0]["is_on"])


def test_buttons_switch_a_fault_and_the_load_of_the_stack(switchboard: "subprocess.Popen[str]") -> None:
    try:
        # After the redirect.
        assert press(f"/faults/{FAULT}/on") == 200
        assert is_on()
        assert "A file of rules can&#x27;t be read" in page("PORTAL_PORT", "/practice/status").text
        assert press("/load/10") == 200
        assert json.loads(gamelake("load", "--json")) == {"events_per_second": 10}

        # What the command line ends is off on the page, too.
        gamelake("fault", "off", FAULT)
        eventually(lambda: f"/faults/{FAULT}/on" in page("PORTAL_PORT", "/practice").text)
        switchboard.send_signal(signal.SIGINT)
        printed, _ = switchboard.communicate(timeout=60)
        assert printed == "still on: a load of 10 events/s; gamelake load stop ends it.\n"
        assert switchboard.returncode == 0
    finally:
        gamelake("fault", "off", FAULT)
        gamelake("load", "stop")


def test_without_the_switchboard_nothing_is_switched() -> None:
    assert press(f"/faults/{FAULT}/on") == 503
    assert not is_on()
    assert "run <code>gamelake switchboard</code>" in page("PORTAL_PORT", "/practice").text
