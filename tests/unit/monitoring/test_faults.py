"""The faults to practise with name alerts, panels, runbooks, commands and services that exist."""

import re
import shlex
from pathlib import Path

import pytest

from gamelake.model.errors import ContractError
from gamelake.observability.faults import Fault, FaultyTraffic, fault_named, load_faults
from monitoring.grafana.dashboards import PAGES
from tests.unit.monitoring.rules import MONITORING, REPOSITORY, alerts
from tests.unit.monitoring.test_runbooks import SERVICES, commands
from tools.simulator.cli import parse

FAULTS = load_faults(MONITORING / "faults.yaml")
EVERY_FAULT = [pytest.param(fault, id=name) for name, fault in FAULTS.items()]
PANELS = {(page.uid, panel.title) for page in PAGES for row in page.rows for panel in row.panels}
PAGE = (REPOSITORY / "docs/faults.md").read_text(encoding="utf-8")
DECLARED = """\
faults:
  - {name: a, title: t, effect: e, injection: {kind: stop, service: s}, panel: {dashboard: d, title: t, shows: "> 1"}}
"""


def test_there_are_fifteen_at_least() -> None:
    assert len(FAULTS) >= 15


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_its_alerts_and_its_panel_exist(fault: Fault) -> None:
    assert set(fault.alerts) <= {alert.name for alert in alerts()}
    assert (fault.panel.dashboard, fault.panel.title) in PANELS
    assert bool(fault.alerts) == (fault.within > 0)


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_its_remedy_is_a_command_of_its_runbook(fault: Fault) -> None:
    assert not fault.alerts or fault.runbook
    known = commands(MONITORING / f"runbooks/{fault.runbook}.md") if fault.runbook else []

    assert not fault.remedy or shlex.split(fault.remedy) in known


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_its_service_exists_and_the_simulator_takes_its_arguments(fault: Fault) -> None:
    service = getattr(fault.injection, "service", None)

    assert service is None or service in SERVICES
    if isinstance(fault.injection, FaultyTraffic):
        filled = [
            each.format(game="Archery Duel", **{"from": "10:00", "to": "11:00"}) for each in fault.injection.arguments
        ]
        addresses = ["--url", "http://x", "--keys-file", "x", "--bootstrap-servers", "x", "--registry-url", "http://x"]
        assert parse([*filled, "--rate", str(fault.injection.rate), *addresses])


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_the_document_has_it_as_the_file_does(fault: Fault) -> None:
    named = ", ".join(f"`{alert}`" for alert in fault.alerts) or "none"

    assert f"| `{fault.name}` | {fault.title} | {named} |" in PAGE


def test_a_fault_without_a_remedy_ends_by_switching_it_off() -> None:
    assert FAULTS["gateway-down"].ended_by == "compose/stack.sh restart ingest"
    assert FAULTS["duplicates"].ended_by == "gamelake fault off duplicates"


def test_the_document_has_no_other_one() -> None:
    table = PAGE.split("## Faults to practise with")[1].split("\n## ")[0]

    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(FAULTS)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (DECLARED.replace("kind: stop", "kind: burn"), "burn"),
        (DECLARED.replace("name: a", "name: A b"), "name"),
        (DECLARED.replace("effect: e,", ""), "effect"),
        (DECLARED + DECLARED.splitlines()[1] + "\n", "there are two faults 'a'"),
        (DECLARED.replace("effect: e", "effect: e, danger: 1"), "danger"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, wrong: str, named: str) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(wrong)

    with pytest.raises(ContractError, match=rf"faults.yaml:\d+: .*{named}"):
        load_faults(path)


def test_an_unknown_fault_is_refused_with_those_there_are() -> None:
    with pytest.raises(ContractError, match=r"there is no fault 'fire'; there are gateway-down, .*silent-game"):
        fault_named(FAULTS, "fire")
