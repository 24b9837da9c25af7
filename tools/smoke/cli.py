"""The command line of the smoke test."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

DEFAULT_PATIENCE_SECONDS = 60.0


class Form(Enum):
    """How the journey is told."""

    LINES = auto()
    JSON = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A parsed command line; without a game it is the contract's first."""

    patience: timedelta
    game: str | None
    form: Form


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line, or leave with a message."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.smoke", description="Send one event and wait until Trino returns it."
    )
    add = parser.add_argument
    add("--patience", type=_seconds, default=DEFAULT_PATIENCE_SECONDS, metavar="SECONDS",
        help="how long the whole journey may take; default: %(default)g")  # fmt: skip
    add("--game", help="a game's name in contracts/games.yaml; default: the first one")
    add("--json", action="store_true", help="print one line of JSON at the end, and nothing else")
    given = parser.parse_args(arguments)
    return Options(
        patience=timedelta(seconds=given.patience), game=given.game, form=Form.JSON if given.json else Form.LINES
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3_600:  # noqa: PLR2004 - an hour
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3600")
    return seconds
