"""Sends one event through the stack and reports the steps of its path: `python -m tools.smoke`."""

from collections.abc import Callable

from gamelake.program import FAILED, OK, run
from tools.smoke.event import choose_game
from tools.smoke.event_trace import CompletedStep, EventTrace, StepFailedError
from tools.smoke.run import as_json, as_line, as_summary, follow_one_event
from tools.smoke.settings import SmokeOptions, SmokeSettings, TraceFormat, parse


def main(arguments: list[str] | None = None) -> int:
    """Run once; 0 when Trino returned the event."""
    options = parse(arguments)
    settings = SmokeSettings.from_env()
    game = choose_game(settings, options.game)
    trace = EventTrace(options.patience, _reporter(options))
    try:
        event = follow_one_event(settings, game, trace)
    except StepFailedError as failure:
        if options.form is TraceFormat.JSON:
            print(as_json(None, trace, failure))
            return FAILED
        raise
    print(as_json(event, trace, None) if options.form is TraceFormat.JSON else as_summary(event, trace))
    return OK


def _reporter(options: SmokeOptions) -> Callable[[CompletedStep], None]:
    if options.form is TraceFormat.JSON:
        return lambda _taken: None
    return lambda taken: print(as_line(taken), flush=True)


if __name__ == "__main__":
    run(main)
