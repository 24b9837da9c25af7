"""Each fault is switched on by the command line, seen in its alert and its panel, and ended by its runbook's remedy."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gamelake.observability.faults import Fault, FaultyTraffic, load_faults
from monitoring.grafana.dashboards import PAGES
from tests.stack.platform import ROOT, Stack, gamelake
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually

FAULTS = load_faults(ROOT / "monitoring/faults.yaml")
# One at a time: each stops or slows what the others need. Those of traffic don't, and run together: first those that
# send little, then the others, for which more games play.
ALONE = [
    pytest.param(fault, id=name) for name, fault in FAULTS.items() if not isinstance(fault.injection, FaultyTraffic)
]
SENDERS = [(fault, fault.injection.rate) for fault in FAULTS.values() if isinstance(fault.injection, FaultyTraffic)]
LITTLE = 100  # events per second
# With how many games have played by their end: one that only a fault has played would be silent for a day.
TRAFFIC = [
    pytest.param([fault for fault, rate in SENDERS if rate <= LITTLE], 3, id="little"),
    pytest.param([fault for fault, rate in SENDERS if rate > LITTLE], 30, id="much"),
]
SHOWN_WITHIN_SECONDS = 600
# What was stopped starts; a rate over ten minutes forgets the fault; an alert keeps on for its own time.
ENDS_WITHIN_SECONDS = 1500
PROMETHEUS = Prometheus()

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("some_load")]


@pytest.fixture(scope="module")
def some_load(stack: Stack) -> Iterator[None]:
    """Players of some games, as without them several faults have no effect."""
    stack.await_health("ingest-events")
    gamelake("load", "set", "50", "--games", "3", "--minutes", "240")
    yield
    gamelake("load", "stop")


@contextmanager
def switched_on(*faults: Fault) -> Iterator[None]:
    """The faults are on, and off at the end whatever happens."""
    try:
        for fault in faults:
            shown = gamelake("fault", "on", fault.name)
            assert f"{fault.name} is on" in shown
            assert all(alert in shown for alert in fault.alerts)
        yield
    finally:
        gamelake("fault", "off")


def is_on(fault: Fault) -> bool:
    """What the command line says."""
    [state] = json.loads(gamelake("fault", "--json", "show", fault.name))
    return bool(state["is_on"])


def fires(alert: str) -> bool:
    return bool(PROMETHEUS.values(f'ALERTS{{alertname="{alert}", alertstate="firing"}}'))


def shows(fault: Fault) -> bool:
    """Return True if the fault's panel has a value as the fault makes it."""
    [panel] = [
        panel
        for page in PAGES
        for row in page.rows
        for panel in row.panels
        if (page.uid, panel.title) == (fault.panel.dashboard, fault.panel.title)
    ]
    texts = [re.sub(r"\$(query|game|table|title)", ".+", query.expr) for query in panel.queries]
    filled = [text.replace("$__rate_interval", "1m").replace("$__range", "40m") for text in texts]
    return any(PROMETHEUS.values(f"({text}) {fault.panel.shows}") for text in filled)


def follow_remedy(fault: Fault) -> None:
    """Run the runbook's command; without one, the sender of the fault stops."""
    if fault.remedy:
        subprocess.run(shlex.split(fault.remedy), cwd=ROOT, check=True, capture_output=True)
    else:
        gamelake("fault", "off", fault.name)


@pytest.mark.parametrize("fault", ALONE)
def test_a_fault_is_seen_and_ended(fault: Fault) -> None:
    eventually(lambda: not any(fires(alert) for alert in fault.alerts), timeout=ENDS_WITHIN_SECONDS)

    with switched_on(fault):
        for alert in fault.alerts:
            eventually(lambda: fires(alert), timeout=fault.within)  # noqa: B023 # at once
        eventually(lambda: shows(fault), timeout=SHOWN_WITHIN_SECONDS)
        assert is_on(fault)
        follow_remedy(fault)
        assert not is_on(fault)
        eventually(lambda: not any(fires(alert) for alert in fault.alerts), timeout=ENDS_WITHIN_SECONDS)


@pytest.mark.parametrize(("faults", "games"), TRAFFIC)
def test_faults_of_traffic_are_seen_and_ended_each_by_itself(faults: Sequence[Fault], games: int) -> None:
    alerts = [alert for fault in faults for alert in fault.alerts]
    eventually(lambda: not any(fires(alert) for alert in alerts), timeout=ENDS_WITHIN_SECONDS)

    with switched_on(*faults):
        for fault in sorted(faults, key=lambda each: each.within):
            for alert in fault.alerts:
                eventually(lambda: fires(alert), timeout=fault.within)  # noqa: B023 # at once
            eventually(lambda: shows(fault), timeout=SHOWN_WITHIN_SECONDS)  # noqa: B023 # at once
            follow_remedy(fault)
            assert not is_on(fault)
        gamelake("load", "set", "100", "--games", str(games), "--minutes", "240")
        for alert in alerts:
            eventually(lambda: not fires(alert), timeout=ENDS_WITHIN_SECONDS)  # noqa: B023 # at once
