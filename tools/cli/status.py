"""The state of the running stack: services, streams and alerts."""

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tools.stack import StackError, page, run, running_containers

_BEHIND = "max by (query) (gamelake_stream_seconds_behind)"
_RATE = "sum by (query) (rate(gamelake_stream_records_total[1m]))"
_UP = "max by (query) (gamelake_stream_up)"
# A service is started again after it ends; what creates topics and the like is not.
_RESTART_POLICY = "{{.HostConfig.RestartPolicy.Name}}"
# A stack has both or, as of make up-minimal, none.
_OBSERVING = frozenset({"prometheus", "alertmanager"})
# The number of things that the text names per alert; --json has all.
_NAMED = 3
_ALERTS = 'max by (alertname, severity, query, game, table, job) (ALERTS{alertstate="firing", severity!="none"})'


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The containers of a service: `state` is healthy, or what the worst of them is."""

    service: str
    state: str
    is_healthy: bool


class StreamStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A query: whether it runs, the age in seconds of its oldest uncommitted record, and records per second."""

    query: str
    runs: bool
    seconds_behind: float | None
    records_per_second: float | None


class FiringAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that fires; `about` has the labels that say what it is about."""

    alert: str
    severity: str
    about: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """All of it; `prometheus` says why streams and alerts are unknown, if they are.

    That is expected if the stack has no Prometheus (`is_observed` is false), as after `make up-minimal`.
    """

    services: tuple[ServiceStatus, ...]
    streams: tuple[StreamStatus, ...] = ()
    alerts: tuple[FiringAlert, ...] = ()
    prometheus: str = ""
    is_observed: bool = True

    @property
    def is_healthy(self) -> bool:
        """True if all services are healthy, all streams run, and no alert fires, as far as it is observed."""
        all_run = all(each.is_healthy for each in self.services) and all(each.runs for each in self.streams)
        return all_run and not self.alerts and not (self.prometheus and self.is_observed)


@dataclass(frozen=True, slots=True)
class _Sample:
    labels: Mapping[str, str]
    value: float


def current() -> Status:
    """Read the present state.

    Raises:
        StartupError: the stack does not run, or docker is not available.
    """
    services = _services()
    names = {each.service for each in services}
    if not names & _OBSERVING:
        return Status(services=services, prometheus="Prometheus is not part of this stack", is_observed=False)
    if "prometheus" not in names:
        return Status(services=services, prometheus="its container is gone: make up creates it")
    try:
        return Status(services=services, streams=_streams(), alerts=_alerts())
    except (OSError, ValueError, StackError) as error:
        return Status(services=services, prometheus=f"Prometheus does not answer: {error}")


def _services() -> tuple[ServiceStatus, ...]:
    found = running_containers()
    exited = [each.id for each in found if each.state == "exited"]
    policies = run(("docker", "inspect", "--format", _RESTART_POLICY, *exited)).split() if exited else []
    one_shots = {each for each, policy in zip(exited, policies, strict=True) if policy == "no"}
    states: dict[str, list[tuple[bool, str]]] = {}
    for each in found:
        if each.id not in one_shots:
            states.setdefault(each.service, []).append((each.is_up, each.health or each.state))
    return tuple(
        ServiceStatus(service=service, state=min(each)[1], is_healthy=min(each)[0])
        for service, each in sorted(states.items())
    )


def _streams() -> tuple[StreamStatus, ...]:
    behind, rate = ({each.labels["query"]: each.value for each in _asked(text)} for text in (_BEHIND, _RATE))
    return tuple(
        StreamStatus(
            query=each.labels["query"],
            runs=each.value == 1,
            seconds_behind=behind.get(each.labels["query"]),
            records_per_second=rate.get(each.labels["query"]),
        )
        for each in sorted(_asked(_UP), key=lambda sample: sample.labels["query"])
    )


def _alerts() -> tuple[FiringAlert, ...]:
    return tuple(_alert(each.labels) for each in _asked(_ALERTS))


def _alert(labels: Mapping[str, str]) -> FiringAlert:
    about = " ".join(labels[name] for name in ("query", "game", "table", "job") if labels.get(name))
    return FiringAlert(alert=labels["alertname"], severity=labels.get("severity", ""), about=about)


def _asked(expression: str) -> list[_Sample]:
    found = page("PROMETHEUS_PORT", f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
    decoded: dict[str, Any] = json.loads(found.text)
    if decoded.get("status") != "success":
        raise ValueError(decoded.get("error", f"it responds with {found.status}"))
    return [_Sample(each["metric"], float(each["value"][1])) for each in decoded["data"]["result"]]


def as_text(status: Status) -> str:
    """Render the state for a terminal."""
    ill = [each for each in status.services if not each.is_healthy]
    lines = [f"services   {len(status.services) - len(ill)} of {len(status.services)} healthy"]
    lines += [f"           {each.service}: {each.state}" for each in ill]
    if status.prometheus:
        lines.append(f"streams    unknown: {status.prometheus}")
    lines += _table("streams", [_stream_line(each) for each in status.streams])
    lines += _table("alerts", _alert_lines(status.alerts))
    if not status.alerts and not status.prometheus:
        lines.append("alerts     none")
    return "\n".join(lines)


def _alert_lines(alerts: Sequence[FiringAlert]) -> list[str]:
    """A line for each kind of alert, the critical ones first: one cause may be behind all tables of a kind."""
    about: dict[tuple[bool, str, str], list[str]] = {}
    for each in alerts:
        about.setdefault((each.severity != "critical", each.alert, each.severity), []).append(each.about)
    return [f"{alert} ({severity}) {_first(found)}".rstrip() for (_, alert, severity), found in sorted(about.items())]


def _first(names: Sequence[str]) -> str:
    first = ", ".join(sorted(names)[:_NAMED])
    return f"{first} and {len(names) - _NAMED} more" if len(names) > _NAMED else first


def _stream_line(stream: StreamStatus) -> str:
    if not stream.runs:
        return f"{stream.query}: down"
    behind = "unknown" if stream.seconds_behind is None else f"{stream.seconds_behind:,.1f} s"
    rate = "unknown" if stream.records_per_second is None else f"{stream.records_per_second:,.0f}/s"
    return f"{stream.query}: {behind} behind, {rate}"


def _table(title: str, rows: Sequence[str]) -> list[str]:
    return [f"{title if number == 0 else '':<10} {row}" for number, row in enumerate(rows)]
