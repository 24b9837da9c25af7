"""Tells a journey: line by line to a person as it happens, or as one line of JSON to a program at its end."""

import json

from tools.smoke.event import EVENT_NAME, SmokeEvent
from tools.smoke.journey import Journey, Step, StepFailedError, StepTaken
from tools.smoke.trino import sql_name


def as_line(taken: StepTaken) -> str:
    """A step for a person."""
    return f"{taken.seconds:7.2f} s  {taken.step:<12}  {taken.place}"


def as_end(event: SmokeEvent, journey: Journey) -> str:
    """The journey in one sentence, and how to look at the event."""
    seconds = journey.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE)
    statement = f"SELECT * FROM {sql_name(event.game.table)} WHERE event_name = '{EVENT_NAME}'"  # noqa: S608 - only shown
    return f'Trino returned the event {seconds:.1f} s after the gateway took it. Next: make sql Q="{statement}"'


def as_json(event: SmokeEvent | None, journey: Journey, failure: StepFailedError | None) -> str:
    """The journey for a program."""
    told: dict[str, object] = {
        "steps": [{"step": taken.step, "seconds": taken.seconds, "place": taken.place} for taken in journey.steps]
    }
    if event is not None:
        told |= {
            "event_id": event.event_id,
            "table": event.game.table,
            "acknowledged_to_trino_seconds": journey.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE),
        }
    if failure is not None:
        told["failed"] = {"step": failure.step, "problem": failure.problem, "next": failure.next_command}
    return json.dumps(told)
