"""The command line of the demo, and the paths of its directory."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.command import command_parser, whole
from gamelake.model.errors import GamelakeError
from tools.embedded.platform_folder import PlatformFolder
from tools.embedded.service import REPOSITORY
from tools.simulator.spec import NEWEST_VERSION

DIRECTORY = REPOSITORY / "build" / "demo"
# Small enough that the first batch ends soon, large enough that 30 commits are a small part of a batch.
MAX_RECORDS_PER_BATCH = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """A parsed command line; `rate` 0 is as fast as possible, `seed` None is a new one in each run."""

    events: int
    games: int
    versions: int
    rate: int
    directory: Path
    seed: int | None
    max_records_per_batch: int


def parse(arguments: Sequence[str] | None = None) -> DemoOptions:
    """Parse the command line; exits with a message if it is malformed."""
    return DemoOptions(**vars(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "Simulate players, ingest their events into one Delta table per game, and reconcile all figures.\n"
        "A second run in the same directory continues with the tables of the first.",
    )
    add = parser.add_argument
    add("--events", type=whole(1), default=250_000, help="events to simulate; default: %(default)s")
    add("--games", type=whole(1), default=30, help="how many of the contract's games; default: %(default)s")
    add(
        "--versions",
        type=whole(1),
        default=NEWEST_VERSION,
        help="newest schema version in the mix; default: %(default)s",
    )
    add("--rate", type=whole(1), default=0, metavar="N", help="events per second; default: as fast as possible")
    add("--directory", type=Path, default=DIRECTORY, help="for tables, Kafka, logs and report; default: build/demo")
    add("--seed", type=int, help="the same seed makes the same events; default: a new one in each run")
    add(
        "--max-records-per-batch",
        type=whole(1),
        default=MAX_RECORDS_PER_BATCH,
        metavar="N",
        help="the job's GAMELAKE_MAX_OFFSETS_PER_TRIGGER; default: %(default)s",
    )
    return parser


@dataclass(frozen=True, slots=True)
class DemoPaths(PlatformFolder):
    """The files and folders of one demo directory."""

    @property
    def job_log(self) -> Path:
        """The log of the ingest job; each run appends to it."""
        return self.log("ingest_events")

    @property
    def lineage(self) -> Path:
        """Lineage events of the ingest job, in addition to the lakehouse's table; each run appends to it."""
        return self.directory / "lineage.jsonl"

    @property
    def games_log(self) -> Path:
        """The log of the games, which send over HTTP; each run appends to it."""
        return self.log("games")

    @property
    def old_producers_log(self) -> Path:
        """The log of the producers that write to Kafka directly; each run appends to it."""
        return self.log("old_producers")

    @property
    def gateway(self) -> Path:
        """The ingest gateway's keys, vault and log."""
        return self.directory / "gateway"

    @property
    def vault(self) -> Path:
        """The vault with the players' personal data, encrypted."""
        return self.gateway / "vault.db"

    @property
    def http_ledger(self) -> Path:
        """The ledger of events that the gateway acknowledged in the latest run."""
        return self.directory / "ledger.http.json"

    @property
    def kafka_ledger(self) -> Path:
        """The ledger of events that the old producers sent to Kafka in the latest run."""
        return self.directory / "ledger.kafka.json"

    @property
    def summary(self) -> Path:
        """The figures of the latest run."""
        return self.directory / "summary.json"

    @property
    def report(self) -> Path:
        """The report of the latest run."""
        return self.directory / "report.html"


class DemoError(GamelakeError):
    """The demo failed before its end."""
