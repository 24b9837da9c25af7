"""Sends events to `make dev` as a game does, by the SDK: `python -m tools.dev.send GAME EVENT ...`."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from gamelake.model.errors import GamelakeError
from services.sdk import BatchOutcome, Client
from tools.dev.options import FIRST_PORT, DevError, DevPorts, add_directory, address
from tools.simulator.game_sdks import read_credentials

OK, FAILED = 0, 1
_TIMEOUT = timedelta(seconds=30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Send events and wait until the gateway has acknowledged them; 1 if it has not accepted all."""
    parser = argparse.ArgumentParser(prog="python -m tools.dev.send", description=__doc__)
    parser.add_argument("game", help="its name in contracts/games.yaml")
    parser.add_argument(
        "events", nargs="+", type=_event, metavar="EVENT", help="JSON; event_time is now if it has none"
    )
    parser.add_argument("--first-port", type=int, default=FIRST_PORT, help="as of python -m tools.dev")
    add_directory(parser)
    options = parser.parse_args(arguments)
    try:
        credentials = read_credentials(options.directory / "gateway" / "keys.yaml")
        if options.game not in credentials:
            raise DevError(f"there is no key for the game '{options.game}': add it to contracts/games.yaml")
        outcomes: list[BatchOutcome] = []
        url = address(DevPorts(options.first_port).gateway)
        with Client.connect(url, credentials[options.game], on_outcome=outcomes.append) as client:
            for event in options.events:
                client.send({"event_time": datetime.now(UTC)} | event)
            if not client.flush(_TIMEOUT):
                raise DevError(f"the gateway at {url} did not answer: is make dev running?")
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return _report(outcomes)


def _report(outcomes: Sequence[BatchOutcome]) -> int:
    problems = [f"{each.reason} {each.field}".rstrip() for outcome in outcomes for each in outcome.rejections]
    problems += [f"{outcome.refusal.status} {outcome.refusal.text}" for outcome in outcomes if outcome.refusal]
    print(f"accepted: {sum(outcome.accepted for outcome in outcomes)}")
    for problem in problems:
        print(f"rejected: {problem}", file=sys.stderr)
    return FAILED if problems else OK


def _event(text: str) -> Mapping[str, object]:
    try:
        event = json.loads(text)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise argparse.ArgumentTypeError(f"{text} is no JSON object")
    return event


if __name__ == "__main__":
    sys.exit(main())
