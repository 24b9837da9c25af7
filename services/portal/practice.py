"""The page of load and faults: what is on, a button for each choice, and what shows a fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gamelake.observability.faults import Fault
from services.portal.dashboards import DASHBOARDS
from services.portal.docs import ALERT_RUNBOOKS
from services.portal.figures import Overview
from services.portal.switchboard import LOADS, SwitchStates
from services.portal.templates import PortalTemplates

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


def practice_page(practice: Practice, templates: PortalTemplates | None = None) -> str:
    """Render the whole page."""
    context = {**_context(practice), "loads": LOADS, "dashboards": DASHBOARDS}
    return (templates or PortalTemplates()).page("practice.html", PRACTICE, **context)


def practice_status(practice: Practice, now: datetime | None = None) -> str:
    """Render the part of the page that is refreshed: active faults, the figures of the streams, and firing alerts."""
    return PortalTemplates.part("practice_status.html", **_context(practice, now))


def _context(practice: Practice, now: datetime | None = None) -> dict[str, object]:
    return {
        "practice": practice,
        "overview": practice.overview,
        "switched_on": _switched_on(practice),
        "now": now or datetime.now(UTC),
        "runbooks": ALERT_RUNBOOKS,
    }


def _switched_on(practice: Practice) -> list[str]:
    load = practice.states.load if practice.states else 0
    names = [each.title for each in practice.faults if practice.is_on(each)]
    return [f"a load of {load:,} events/s", *names] if load else names
