"""The page of load and faults: what is on, a button for each choice, and what shows a fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from gamelake.observability.faults import Fault
from services.portal.dashboards import DASHBOARDS
from services.portal.figures import Overview
from services.portal.html import button, link, page, refreshed, section, table
from services.portal.pages import alerts_part, runbook_link, streams_part
from services.portal.switchboard import LOADS, SwitchStates

PRACTICE, PRACTICE_STATUS = "/practice", "/practice/status"
FAULTS, LOAD = "/faults/", "/load/"
TITLE = "Load and faults"


@dataclass(frozen=True, slots=True)
class Practice:
    """The content of the page.

    Attributes:
        overview: health, figures and alerts.
        states: what is switched on; None: nothing can be switched from the portal now.
        faults: all that there are.
    """

    overview: Overview
    states: SwitchStates | None
    faults: Sequence[Fault]

    def is_on(self, fault: Fault) -> bool:
        """Return True if a fault is known to be on."""
        return self.states is not None and fault.name in (self.states.faults or ())


def practice_page(practice: Practice) -> str:
    """Render the whole page."""
    parts = [f"<h1>{TITLE}</h1>", refreshed(practice_status(practice), PRACTICE_STATUS)]
    if practice.states is None:
        parts.append(
            "<p>To switch load and faults here, run <code>gamelake switchboard</code> in a terminal on the stack's "
            "machine, and load this page again. The commands below work without it.</p>"
        )
    else:
        parts.append(_dial(practice.states.load))
    if practice.faults:
        parts.append(_faults_part(practice))
    return page(f"{TITLE} - Gamelake", "\n".join(parts))


def practice_status(practice: Practice, now: datetime | None = None) -> str:
    """Render the part of the page that is refreshed: active faults, the figures of the streams, and firing alerts."""
    moment = (now or datetime.now(UTC)).strftime("%H:%M:%S")
    parts = [
        section("on", "Switched on", _switched_on(practice)),
        streams_part(practice.overview.streams),
        alerts_part(practice.overview.alerts),
        f"<p>As of {moment} UTC.</p>",
    ]
    return "".join(parts)


def _switched_on(practice: Practice) -> str:
    if practice.states is None:
        return "<p>It is not known what is on: the switchboard does not run.</p>"
    load = f"a load of {practice.states.load:,} events/s" if practice.states.load else ""
    names = [load, *(each.title for each in practice.faults if practice.is_on(each))]
    items = "".join(f"<li>{escape(name)}</li>" for name in names if name)
    return f"<ul>{items}</ul>" if items else "<p>Nothing is on.</p>"


def _dial(load: int) -> str:
    choices = "".join(
        button(
            f"{LOAD}{rate}",
            f"{rate:,}" if rate else "off",
            f"{rate:,} events per second" if rate else "No load",
            "Switching",
            is_pressed=rate == load,
        )
        for rate in LOADS
    )
    return section(
        "load",
        "Load",
        "<p>Events per second that simulated players send to the gateway:</p>"
        f'<div class="dial" role="group" aria-labelledby="load">{choices}</div>',
    )


def _faults_part(practice: Practice) -> str:
    rows = (
        (
            f"{escape(each.title)}. {escape(each.effect)}",
            _switch(practice, each),
            ", ".join(_alert(name, practice) for name in each.alerts) or "none",
            link(f"{DASHBOARDS}{each.panel.dashboard}", each.panel.title),
            f"<code>{escape(each.ended_by)}</code>",
        )
        for each in practice.faults
    )
    columns = ("fault", "switch", "alerts and their runbooks", "panel", "remedy")
    return section("faults", "Faults to practise with", table("Faults and what shows them", columns, rows))


def _switch(practice: Practice, fault: Fault) -> str:
    if practice.states is None:
        return f"<code>gamelake fault on {escape(fault.name)}</code>"
    if practice.is_on(fault):
        return '<span class="bad">is on</span> ' + button(
            f"{FAULTS}{fault.name}/off", "Switch off", f"Switch off: {fault.title}", "Switching"
        )
    return button(f"{FAULTS}{fault.name}/on", "Switch on", f"Switch on: {fault.title}", "Switching")


def _alert(name: str, practice: Practice) -> str:
    fires = ' <span class="bad">fires</span>' if name in (practice.overview.alerts or ()) else ""
    return runbook_link(name) + fires
