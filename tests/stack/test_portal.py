"""The stack's portal switches load and faults while the switchboard runs on the machine, and nothing otherwise."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from gamelake.model.errors import StartupError
from gamelake.observability.faults import load_faults
from tests.stack.platform import ROOT, Stack, gamelake
from tests.support.eventually import eventually
from tools.pictures.browser import python_and_chromium
from tools.stack import OPERATOR, page, url

FAULT = "bad-rule"
SECONDS_TO_SWITCH = 200


@pytest.fixture(scope="module", autouse=True)
def portal(stack: Stack) -> None:
    for service in ("prometheus", "portal"):
        stack.await_health(service)


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
    """Post the form of a button, as the operator's browser does. Return the status of the page that it leads to."""
    return page("PORTAL_PORT", path, "POST", SECONDS_TO_SWITCH).status


def is_on() -> bool:
    """What the command line says of the fault."""
    return bool(json.loads(gamelake("fault", "--json", "show", FAULT))[0]["is_on"])


def test_buttons_switch_a_fault_and_the_load_of_the_stack(switchboard: "subprocess.Popen[str]") -> None:
    try:
        # After the redirect.
        assert press(f"/faults/{FAULT}/on") == 200
        assert is_on()
        assert "A file of rules can&#39;t be read" in page("PORTAL_PORT", "/practice/status").text
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


@pytest.mark.usefixtures("switchboard")
def test_its_pages_work_in_a_browser_with_the_operators_certificate(missing_service: Callable[[str], NoReturn]) -> None:
    try:
        python, chromium = python_and_chromium()
    except StartupError as error:
        missing_service(str(error))
    script = str(ROOT / "tests/support/portal_in_a_browser.py")
    command = (python, script, chromium, url("PORTAL_PORT"), str(OPERATOR))

    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["violations"] == []
    assert found["problems"] == []
    assert not found["wider_than_a_phone"]
    assert found["copied"] == "gamelake credentials grafana-password"
    assert found["switches"] == len(load_faults(ROOT / "monitoring/faults.yaml"))


def test_without_the_switchboard_nothing_is_switched() -> None:
    assert press(f"/faults/{FAULT}/on") == 503
    assert not is_on()
    assert "<code>gamelake switchboard</code>" in page("PORTAL_PORT", "/practice").text


def test_the_address_of_gamelake_portal_opens_the_portal_once_without_a_certificate() -> None:
    address = json.loads(gamelake("portal", "--json", "--no-browser"))["address"]
    browser, other_browser = (build_opener(HTTPCookieProcessor()) for _ in range(2))

    with browser.open(address, timeout=60) as entered, browser.open(entered.url, timeout=60) as again:
        assert entered.url == f"{address.partition('/enter')[0]}/"
        assert "Questions" in again.read().decode()
    with pytest.raises(HTTPError) as refused:
        other_browser.open(address, timeout=60)

    assert refused.value.code == 403
    assert "<code>gamelake portal</code>" in refused.value.read().decode()
