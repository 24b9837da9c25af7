"""The page of load and faults has a button for each choice, says what is on, and which of a fault's alerts fire."""

from datetime import UTC, datetime

from gamelake.observability.faults import load_faults
from services.portal.figures import Overview
from services.portal.practice import Practice, practice_page, practice_status
from services.portal.switchboard import LOADS, SwitchStates
from tests.unit.portal.portals import Elements
from tools.embedded.service import REPOSITORY

FAULTS = tuple(load_faults(REPOSITORY / "monitoring/faults.yaml").values())
NOON = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)


def practice(states: SwitchStates | None, *firing: str) -> Practice:
    """What the page shows with these alerts."""
    return Practice(Overview((), (), alerts=firing), states, FAULTS)


def test_each_load_and_each_fault_has_a_button_with_a_name_of_its_own() -> None:
    elements = Elements(practice_page(practice(SwitchStates(load=0, faults=()))))

    actions = {form["action"] for form in elements.all("form")}
    assert actions == {f"/load/{rate}" for rate in LOADS} | {f"/faults/{each.name}/on" for each in FAULTS}
    names = [button["aria-label"] for button in elements.all("button")]
    assert len(set(names)) == len(names)


def test_the_present_load_is_marked_and_a_fault_that_is_on_can_be_switched_off() -> None:
    page = practice_page(practice(SwitchStates(load=200, faults=("gateway-down",))))
    elements = Elements(page)

    pressed = [button["aria-label"] for button in elements.all("button") if button.get("aria-pressed") == "true"]
    assert pressed == ["200 events per second"]
    actions = {form["action"] for form in elements.all("form")}
    assert "/faults/gateway-down/off" in actions
    assert "/faults/gateway-down/on" not in actions


def test_what_is_on_is_listed_with_the_time() -> None:
    on = practice_status(practice(SwitchStates(load=1_000, faults=("gateway-down",))), NOON)

    assert "<li>a load of 1,000 events/s</li><li>The gateway is down</li>" in on
    assert "As of 12:00:00 UTC." in on
    assert "Nothing is on." in practice_status(practice(SwitchStates(load=0, faults=())))


def test_of_the_alerts_of_a_fault_those_that_fire_are_marked() -> None:
    states = SwitchStates(load=0, faults=("kafka-down",))

    page = practice_page(practice(states, "StreamLagUnknown"))

    assert 'StreamLagUnknown</a> <span class="bad">fires</span>' in page
    assert 'GatewayDown</a> <span class="bad">fires</span>' not in page


def test_without_a_switchboard_the_page_has_the_commands() -> None:
    page = practice_page(practice(None))

    assert Elements(page).all("form") == []
    assert "<code>gamelake switchboard</code>" in page
    assert all(f"<code>gamelake fault on {each.name}</code>" in page for each in FAULTS)
    assert "It is not known what is on" in page


def test_a_platform_without_faults_has_the_load_alone() -> None:
    page = practice_page(Practice(Overview((), ()), SwitchStates(load=0), ()))

    assert {form["action"] for form in Elements(page).all("form")} == {f"/load/{rate}" for rate in LOADS}
    assert "Faults to practise with" not in page
