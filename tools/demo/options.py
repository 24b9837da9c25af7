"""The command line: what a person may ask of the demo."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.errors import GamelakeError
from gamelake.storage.store import Location
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


@dataclass(frozen=True, slots=True)
class Places:
    """The files and folders of one demo directory."""

    directory: Path

    @classmethod
    def under(cls, directory: Path) -> Self:
        """Make the directory, and name what is in it."""
        resolved = directory.resolve()
        (resolved / "logs").mkdir(parents=True, exist_ok=True)
        return cls(resolved)

    @property
    def lakehouse(self) -> Location:
        """The tables."""
        # Not as_uri(), which would write a space as %20: Spark takes such a path by the letter.
        return Location(uri=f"file://{self.directory / 'lakehouse'}")

    @property
    def job_log(self) -> Path:
        """What the ingest job says; each run adds to it."""
        return self.directory / "logs" / "ingest_events.log"

    @property
    def lineage(self) -> Path:
        """What the ingest job tells of its tables' lineage, besides the table; each run adds to it."""
        return self.directory / "lineage.jsonl"

    @property
    def games_log(self) -> Path:
        """What the games that send over HTTP say; each run adds to it."""
        return self.directory / "logs" / "games.log"

    @property
    def old_producers_log(self) -> Path:
        """What the producers that write to Kafka say; each run adds to it."""
        return self.directory / "logs" / "old_producers.log"

    @property
    def gateway(self) -> Path:
        """The ingest gateway's keys, vault and log; a directory of an earlier version has them in `front_door`."""
        earlier = self.directory / "front_door"
        return earlier if earlier.is_dir() else self.directory / "gateway"

    @property
    def vault(self) -> Path:
        """Who the players are, sealed."""
        return self.gateway / "vault.db"

    @property
    def http_ledger(self) -> Path:
        """What the gateway has acknowledged to the games of the latest run."""
        return self.directory / "ledger.http.json"

    @property
    def kafka_ledger(self) -> Path:
        """What the old producers of the latest run have sent to Kafka."""
        return self.directory / "ledger.kafka.json"

    @property
    def summary(self) -> Path:
        """The latest run in figures."""
        return self.directory / "summary.json"

    @property
    def report(self) -> Path:
        """The latest run as a page."""
        return self.directory / "report.html"


class DemoError(GamelakeError):
    """The run could not be brought to its end."""
