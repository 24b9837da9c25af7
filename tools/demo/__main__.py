"""Runs the demo: `python -m tools.demo`; exits with 0 if the figures reconcile, 1 if not, 130 after Ctrl-C."""

import signal
import sys
import time
from collections.abc import Sequence

from gamelake.model.errors import GamelakeError
from tools.demo.evaluation import summarise
from tools.demo.options import DemoOptions, DemoPaths, parse
from tools.demo.redraw import draw
from tools.demo.run import DemoRun
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
        print("gamelake: interrupted; all processes have ended, and the next run continues from here", file=sys.stderr)
        return INTERRUPTED
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED


def _run(options: DemoOptions, screen: Screen) -> int:
    paths = DemoPaths.under(options.directory)
    # Another seed in each run: with the same one, players and events would have the same ids as in the last run.
    seed = int(time.time()) if options.seed is None else options.seed
    for outdated in (paths.http_ledger, paths.kafka_ledger, paths.summary, paths.report):
        outdated.unlink(missing_ok=True)
    recording = DemoRun(options, paths, seed, screen).record()
    screen.print_line("Checking the tables against the events that were sent")
    summary = summarise(options, paths, seed, recording)
    paths.summary.write_bytes(summary.to_json())
    draw(summary, paths)
    screen.print_line(f"\n{as_text(summary)}\n\n{paths.report.as_uri()}")
    return OK if summary.verdict.is_consistent else FAILED


if __name__ == "__main__":
    sys.exit(main())
