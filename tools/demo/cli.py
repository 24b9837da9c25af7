"""The command line: what a person may ask of the demo."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.embedded.service import REPOSITORY

DIRECTORY = REPOSITORY / "build" / "demo"
# Small enough that the first figures come soon after the first batch, large enough that 30 commits cost little.
MAX_RECORDS_PER_BATCH = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A parsed command line; `rate` 0 is as fast as possible, `seed` None is another one in each run."""

    events: int
    games: int
    versions: int
    rate: int
    directory: Path
    seed: int | None
    max_records_per_batch: int


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line, or leave with a message."""
    return Options(**vars(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo",
        description="Simulate players, ingest their events into one Delta table per game, and check every figure. "
        "A second run in the same directory goes on with the tables of the first.",
    )
    add = parser.add_argument
    add("--events", type=_positive, default=1_000_000, help="events to simulate; default: %(default)s")
    add("--games", type=_positive, default=30, help="how many of the contract's games; default: %(default)s")
    add("--versions", type=_positive, default=3, help="newest schema version in the mix; default: %(default)s")
    add("--rate", type=_positive, default=0, metavar="N", help="events per second; default: as fast as it goes")
    add("--directory", type=Path, default=DIRECTORY, help="for tables, Kafka, logs and report; default: build/demo")
    add("--seed", type=int, help="the same seed makes the same events; default: another one in each run")
    add(
        "--max-records-per-batch",
        type=_positive,
        default=MAX_RECORDS_PER_BATCH,
        metavar="N",
        help="the job's GAMELAKE_MAX_OFFSETS_PER_TRIGGER; default: %(default)s",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number
