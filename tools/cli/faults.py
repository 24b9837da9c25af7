"""Switches the faults of `monitoring/faults.yaml` on and off in the running stack, which itself has their state."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from gamelake.contract.games import load_games
from gamelake.model.errors import StartupError
from gamelake.observability.faults import (
    BadRules,
    Fault,
    FaultyTraffic,
    FullStore,
    PausedService,
    SlowService,
    StoppedService,
)
from services.portal.dashboards import DASHBOARDS
from services.portal.docs import DOCS, RUNBOOKS
from services.provision.object_store import ObjectStoreAdmin, read_key
from services.provision.provisioning import ServiceUnavailableError
from tools.cli.load import LOAD, SimulatorContainer
from tools.embedded.service import REPOSITORY
from tools.stack import SECRETS, Container, compose, ports, run, url

FAULTS = REPOSITORY / "monitoring/faults.yaml"
_RULES = REPOSITORY / "quality/rules"
_MINUTES, _USUAL_MINUTES = 60, 5
_PERIOD_MICROSECONDS = 100_000
_UNLIMITED = -1
_SIGNS = {"==": "of ", ">": "above ", "<": "below "}


class FaultState(msgspec.Struct, frozen=True, kw_only=True):
    """A fault, whether it is on, and what it shows; `dashboard` and `runbook` are addresses, empty if there is none."""

    fault: str
    title: str
    is_on: bool
    effect: str
    alerts: tuple[str, ...]
    within_seconds: int
    panel: str
    shows: str
    dashboard: str
    runbook: str
    remedy: str


class FaultSwitch(Protocol):
    """Switches one fault."""

    def is_on(self) -> bool:
        """Return True if the fault is on."""

    def turn_on(self) -> None:
        """Switch it on."""

    def turn_off(self) -> None:
        """Switch it off."""


@dataclass(frozen=True, slots=True)
class _ServiceState:
    """All containers of a service are in another state."""

    containers: Sequence[Container]
    service: str
    state: str
    on: str
    off: str

    def is_on(self) -> bool:
        return any(each.state == self.state for each in self.containers)

    def turn_on(self) -> None:
        compose(self.on, self.service)

    def turn_off(self) -> None:
        compose(self.off, self.service)


@dataclass(frozen=True, slots=True)
class _SlowService:
    containers: Sequence[Container]
    cores: float

    def is_on(self) -> bool:
        found = json.loads(run(("docker", "inspect", *self._ids())))
        return any(each["HostConfig"]["CpuQuota"] > 0 for each in found)

    def turn_on(self) -> None:
        self._limit(round(self.cores * _PERIOD_MICROSECONDS))

    def turn_off(self) -> None:
        self._limit(_UNLIMITED)

    def _limit(self, quota: int) -> None:
        period = ("--cpu-period", str(_PERIOD_MICROSECONDS))
        run(("docker", "update", *period, "--cpu-quota", str(quota), *self._ids()))

    def _ids(self) -> Sequence[str]:
        return [each.id for each in self.containers]


@dataclass(frozen=True, slots=True)
class _FullStore:
    """A limit that the smallest object exceeds: nothing fills the machine's own disk."""

    bucket: str

    def is_on(self) -> bool:
        try:
            return self._store().quota(self.bucket) > 0
        except ServiceUnavailableError:
            # It is stopped or hangs, by another fault.
            return False

    def turn_on(self) -> None:
        self._store().set_quota(self.bucket, 1)

    def turn_off(self) -> None:
        self._store().set_quota(self.bucket, 0)

    def _store(self) -> ObjectStoreAdmin:
        return ObjectStoreAdmin(url("OBJECT_STORE_PORT"), read_key(SECRETS / "object-store-root"))


@dataclass(frozen=True, slots=True)
class _RulesFile:
    name: str
    text: str

    def is_on(self) -> bool:
        return self._path.exists()

    def turn_on(self) -> None:
        self._path.write_text(self.text, encoding="utf-8")

    def turn_off(self) -> None:
        self._path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return _RULES / f"fault-{self.name}.yaml"


@dataclass(frozen=True, slots=True)
class _Traffic:
    container: SimulatorContainer
    injection: FaultyTraffic

    def is_on(self) -> bool:
        return self.container.rate() is not None

    def turn_on(self) -> None:
        now = datetime.now(UTC)
        # The simulator takes times of a day. Before an incident a game has to be known by its usual traffic.
        hour = {
            "from": f"{now + timedelta(minutes=_USUAL_MINUTES):%H:%M}",
            "to": f"{now + timedelta(minutes=_MINUTES):%H:%M}",
        }
        title = load_games(REPOSITORY / "contracts/games.yaml").games[-1].game_name
        arguments = [each.format(game=title, **hour) for each in self.injection.arguments]
        self.container.start(self.injection.rate, _MINUTES, arguments)

    def turn_off(self) -> None:
        self.container.stop()


def switch_of(fault: Fault, running: Sequence[Container]) -> FaultSwitch:
    """Return the switch of a fault in the running stack.

    Args:
        fault: the fault.
        running: the containers of the stack, as they are now.

    Raises:
        StartupError: the stack does not run, or lacks the service.
    """
    match fault.injection:
        case StoppedService(service):
            return _ServiceState(_of_service(service, running), service, "exited", "stop", "start")
        case PausedService(service):
            return _ServiceState(_of_service(service, running), service, "paused", "pause", "unpause")
        case SlowService(service, cores):
            return _SlowService(_of_service(service, running), cores)
        case FullStore(bucket):
            return _FullStore(bucket)
        case BadRules(text):
            return _RulesFile(fault.name, text)
        case FaultyTraffic():
            return _Traffic(SimulatorContainer(f"{LOAD}-{fault.name}"), fault.injection)


def switch(fault: Fault, running: Sequence[Container], *, on: bool) -> None:
    """Switch a fault of the running stack on or off; one that is so already stays; arguments as of `switch_of`.

    Raises:
        StartupError: the stack does not run, or lacks the service.
        StackError: it could not be switched.
    """
    found = switch_of(fault, running)
    if found.is_on() == on:
        return
    if on:
        found.turn_on()
    else:
        found.turn_off()


def state_of(fault: Fault, running: Sequence[Container]) -> FaultState:
    """Return the present state of a fault; arguments as of `switch_of`.

    Raises:
        StartupError: the stack does not run, or lacks the service.
        StackError: docker is not available.
    """
    portal = f"http://127.0.0.1:{ports()['PORTAL_BROWSER_PORT']}"
    return FaultState(
        fault=fault.name,
        title=fault.title,
        is_on=switch_of(fault, running).is_on(),
        effect=fault.effect,
        alerts=fault.alerts,
        within_seconds=fault.within,
        panel=fault.panel.title,
        shows=fault.panel.shows,
        dashboard=f"{portal}{DASHBOARDS}{fault.panel.dashboard}",
        runbook=f"{portal}{DOCS}{RUNBOOKS}{fault.runbook}/" if fault.runbook else "",
        remedy=fault.ended_by,
    )


def as_text(states: Sequence[FaultState]) -> str:
    """Render a line for each fault, or all of a single one."""
    if len(states) == 1:
        return _whole(states[0])
    width = max(len(each.fault) for each in states)
    return "\n".join(f"{'on ' if each.is_on else 'off'}  {each.fault:<{width}}  {each.title}" for each in states)


def _in_words(shows: str) -> str:
    """A comparison such as `> 120`."""
    sign, value = shows.split(" ")
    return f"{_SIGNS[sign]}{value}"


def _whole(state: FaultState) -> str:
    alerts = f"{', '.join(state.alerts)}, within {state.within_seconds} s" if state.alerts else "none"
    rows = {
        "fault": f"{state.fault} is {'on' if state.is_on else 'off'}: {state.title}",
        "effect": state.effect,
        "alerts": alerts,
        "panel": f'"{state.panel}" shows values {_in_words(state.shows)}: {state.dashboard}',
        "runbook": state.runbook or "none",
        "remedy": state.remedy,
    }
    return "\n".join(f"{name:<8} {text}" for name, text in rows.items())


def _of_service(service: str, running: Sequence[Container]) -> Sequence[Container]:
    found = [each for each in running if each.service == service]
    if not found:
        raise StartupError(f"the stack does not run, or has no service {service}: make up starts all of them")
    return found
