"""Sends events to `make dev` as a game does, by the SDK: `python -m tools.dev.send GAME EVENT ...`."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from google.protobuf.descriptor import Descriptor

from gamelake.command import command_parser, whole
from gamelake.model.choices import allowed
from gamelake.model.errors import GamelakeError
from gamelake.schemas.event_schemas import newest_submitted
from services.sdk import BatchOutcome, Client
from tools.dev.options import LAST_FIRST_PORT, DevError, DevPorts, add_directory, address
from tools.dev.running import RunningDev, wait_for_contracts
from tools.embedded.service import CONTRACTS
from tools.simulator.game_sdks import read_credentials

OK, FAILED = 0, 1
_TIMEOUT = timedelta(seconds=30)
_SECONDS_TO_RESTART = 300.0
_UNKNOWN_FIELD = "unknown_field"


def main(arguments: Sequence[str] | None = None) -> int:
    """Send events and wait until the gateway has acknowledged them; 1 if it has not accepted all."""
    parser = command_parser(__doc__)
    parser.add_argument("game", help="its name in contracts/games.yaml")
    parser.add_argument(
        "events", nargs="+", type=_event, metavar="EVENT", help="JSON; event_time is now if it has none"
    )
    parser.add_argument(
        "--first-port", type=whole(1024, LAST_FIRST_PORT), help="default: that of the make dev that runs"
    )
    add_directory(parser)
    options = parser.parse_args(arguments)
    try:
        wait_for_contracts(options.directory, CONTRACTS, _SECONDS_TO_RESTART)
        credentials = read_credentials(options.directory / "gateway" / "keys.yaml")
        if options.game not in credentials:
            raise DevError(
                f"there is no key for the game '{options.game}': add it to contracts/games.yaml, or name "
                f"{allowed(sorted(credentials), options.game)}"
            )
        outcomes: list[BatchOutcome] = []
        first_port = options.first_port or RunningDev.read(options.directory).first_port
        url = address(DevPorts(first_port).gateway[0])
        with Client.connect(url, credentials[options.game], on_outcome=outcomes.append) as client:
            for event in options.events:
                client.send({"event_time": datetime.now(UTC)} | event)
            if not client.flush(_TIMEOUT):
                raise DevError(f"the gateway at {url} took no events ({client.stats().problem}): is make dev running?")
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return _report(outcomes, options.events)


def _report(outcomes: Sequence[BatchOutcome], events: Sequence[Mapping[str, object]]) -> int:
    rejections = [each for outcome in outcomes for each in outcome.rejections]
    problems = [f"{each.reason} {each.field}".rstrip() for each in rejections]
    if any(each.reason == _UNKNOWN_FIELD for each in rejections):
        # The gateway names no text of an event, which may be personal data.
        contract = newest_submitted(CONTRACTS).message
        problems += [problem for event in events for problem in unknown_fields(contract, event)]
    problems += [f"{outcome.refusal.status} {outcome.refusal.text}" for outcome in outcomes if outcome.refusal]
    print(f"accepted: {sum(outcome.accepted for outcome in outcomes)}")
    for problem in problems:
        print(f"rejected: {problem}", file=sys.stderr)
    return FAILED if problems else OK


def unknown_fields(message: Descriptor, event: Mapping[str, object], parents: str = "") -> Iterator[str]:
    """Yield a line about each field of an event that its contract lacks, with the nearest field that it has."""
    for name, value in event.items():
        field = message.fields_by_name.get(name)
        if field is None:
            yield f"the contract has no field {parents}{name}: it must be {allowed(message.fields_by_name, name)}"
        elif field.message_type is not None and not field.is_repeated and isinstance(value, Mapping):
            yield from unknown_fields(field.message_type, value, f"{parents}{name}.")


def _event(text: str) -> Mapping[str, object]:
    try:
        event = json.loads(text)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise argparse.ArgumentTypeError(f"{text} is not a JSON object")
    return event


if __name__ == "__main__":
    sys.exit(main())
