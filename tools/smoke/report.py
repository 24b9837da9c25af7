"""Texts of a trace: a line for each step as it happens, or one line of JSON at the end."""

import json

from tools.smoke.event import EVENT_NAME, SmokeEvent
from tools.smoke.event_trace import CompletedStep, EventTrace, Step, StepFailedError
from tools.smoke.trino import sql_name


def as_line(taken: CompletedStep) -> str:
    """A completed step as a line of text."""
    return f"{taken.seconds:7.2f} s  {taken.step:<12}  {taken.place}"


def as_summary(event: SmokeEvent, trace: EventTrace) -> str:
    """The result in one sentence, with the command that shows the event."""
    seconds = trace.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE)
    statement = f"SELECT * FROM {sql_name(event.game.table)} WHERE event_name = '{EVENT_NAME}'"  # noqa: S608 - only shown
    return f'Trino returned the event {seconds:.1f} s after the gateway acknowledged it. Next: make sql Q="{statement}"'


def as_json(event: SmokeEvent | None, trace: EventTrace, failure: StepFailedError | None) -> str:
    """The trace as one line of JSON."""
    document: dict[str, object] = {
        "steps": [{"step": taken.step, "seconds": taken.seconds, "place": taken.place} for taken in trace.steps]
    }
    if event is not None:
        document |= {
            "event_id": event.event_id,
            "table": event.game.table,
            "acknowledged_to_trino_seconds": trace.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE),
        }
    if failure is not None:
        document["failed"] = {"step": failure.step, "problem": failure.problem, "next": failure.next_command}
    return json.dumps(document)
