"""Runs the demo: `python -m tools.demo`; 0 if everything adds up, 1 if anything does not, 130 after Ctrl-C."""

import signal
import sys
import time
from collections.abc import Sequence

from gamelake.model.errors import GamelakeError
from tools.demo.evaluation import summarise
from tools.demo.options import Options, Places, parse
from tools.demo.redraw import draw
from tools.demo.run import Run
from tools.demo.screen import Screen
from tools.demo.text_report import as_text

OK, FAILED, INTERRUPTED = 0, 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, check it, and write the report."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Screen() as screen:
            return _run(options, screen)
    except KeyboardInterrupt:
        print("gamelake: interrupted; everything has ended, and the next run goes on from here", file=sys.stderr)
        return INTERRUPTED
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED


def _run(options: Options, screen: Screen) -> int:
    places = Places.under(options.directory)
    # Players of another run are other players: events of the same seed would have the same ids.
    seed = int(time.time()) if options.seed is None else options.seed
    for outdated in (places.http_ledger, places.kafka_ledger, places.summary, places.report):
        outdated.unlink(missing_ok=True)
    recording = Run(options, places, seed, screen).record()
    screen.say("Checking the tables against what was sent")
    summary = summarise(options, places, seed, recording)
    places.summary.write_bytes(summary.to_json())
    draw(summary, places)
    screen.say(f"\n{as_text(summary)}\n\n{places.report.as_uri()}")
    return OK if summary.verdict.adds_up else FAILED


if __name__ == "__main__":
    sys.exit(main())
