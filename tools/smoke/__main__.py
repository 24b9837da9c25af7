"""Sends one event through the stack and tells the path it took: `python -m tools.smoke`."""

from collections.abc import Callable

from gamelake.program import FAILED, OK, run
from tools.smoke.cli import Form, Options, parse
from tools.smoke.event import choose_game
from tools.smoke.journey import Journey, StepFailedError, StepTaken
from tools.smoke.report import as_end, as_json, as_line
from tools.smoke.run import follow_one_event
from tools.smoke.settings import SmokeSettings


def main(arguments: list[str] | None = None) -> int:
    """Run once; 0 when Trino returned the event."""
    options = parse(arguments)
    settings = SmokeSettings.from_env()
    game = choose_game(settings, options.game)
    journey = Journey(options.patience, _teller(options))
    try:
        event = follow_one_event(settings, game, journey)
    except StepFailedError as failure:
        if options.form is Form.JSON:
            print(as_json(None, journey, failure))
            return FAILED
        raise
    print(as_json(event, journey, None) if options.form is Form.JSON else as_end(event, journey))
    return OK


def _teller(options: Options) -> Callable[[StepTaken], None]:
    if options.form is Form.JSON:
        return lambda _taken: None
    return lambda taken: print(as_line(taken), flush=True)


if __name__ == "__main__":
    run(main)
