"""The command line of the smoke test."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

DEFAULT_PATIENCE_SECONDS = 60.0


class OutputFormat(Enum):
    """How the trace is printed."""

    LINES = auto()
    JSON = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeOptions:
    """A parsed command line; `game` None is the contract's first game."""

    patience: timedelta
    game: str | None
    form: OutputFormat


def parse(arguments: Sequence[str] | None = None) -> SmokeOptions:
    """Parse the command line; exits with a message if it is malformed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.smoke", description="Send one event and wait until Trino returns it."
    )
    add = parser.add_argument
    add("--patience", type=_seconds, default=DEFAULT_PATIENCE_SECONDS, metavar="SECONDS",
        help="time limit for all steps together; default: %(default)g")  # fmt: skip
    add("--game", help="a game's name in contracts/games.yaml; default: the first one")
    add("--json", action="store_true", help="print one line of JSON at the end, and nothing else")
    given = parser.parse_args(arguments)
    return SmokeOptions(
        patience=timedelta(seconds=given.patience),
        game=given.game,
        form=OutputFormat.JSON if given.json else OutputFormat.LINES,
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3_600:  # noqa: PLR2004 - an hour
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3600")
    return seconds
