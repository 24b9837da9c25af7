"""The command line of `make dev`, its directory and its ports."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.command import command_parser, whole
from gamelake.model.errors import StartupError
from tools.embedded.platform_folder import PlatformFolder
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY

DIRECTORY = REPOSITORY / "build" / "dev"
# Below the ports that tests take, and next to none of the stack's.
FIRST_PORT = 17_000
LAST_FIRST_PORT = 65_000


class DevError(StartupError):
    """`make dev` can't start; says what to do."""


@dataclass(frozen=True, slots=True)
class DevPorts:
    """The ports on the loopback address, each at a fixed distance from the first one."""

    first: int

    @property
    def portal(self) -> int:
        """The portal, HTTP."""
        return self.first

    @property
    def gateway(self) -> tuple[int, int]:
        """The ingest gateway, HTTP, and its metrics."""
        return self.first + 1, self.first + 9

    @property
    def registry(self) -> tuple[int, int]:
        """The schema registry, and its management."""
        return self.first + 2, self.first + 3

    @property
    def kafka(self) -> tuple[int, int]:
        """Kafka, and its controller."""
        return self.first + 4, self.first + 5

    @property
    def ingest_metrics(self) -> int:
        """The metrics of the ingest job."""
        return self.first + 6

    @property
    def serving_metrics(self) -> range:
        """The metrics of gold with the KPIs, and of live operations."""
        return range(self.first + 7, self.first + 9)

    @property
    def all(self) -> range:
        """Every port that is listened on."""
        return range(self.first, self.first + 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevOptions:
    """A parsed command line; with `rate` 0 there is no load."""

    directory: Path
    first_port: int
    rate: int
    games: int

    @property
    def ports(self) -> DevPorts:
        """The ports that are listened on."""
        return DevPorts(self.first_port)


def parse(arguments: Sequence[str] | None = None) -> DevOptions:
    """Parse the command line; exits with a message if it is malformed."""
    parser = command_parser(
        "Run Kafka, schema registry, gateway, ingestion and serving on this machine until Ctrl-C.\n"
        "Programs start again when their code changes. The next start continues with the same data.",
    )
    add = parser.add_argument
    add("--rate", type=whole(0, 1_000_000), default=0, metavar="N", help="events per second of simulated players")
    add("--games", type=whole(1, 1_000), default=30, metavar="N", help="how many games they play; default: %(default)s")
    add_directory(parser)
    add(
        "--first-port",
        type=whole(1024, LAST_FIRST_PORT),
        default=FIRST_PORT,
        metavar="PORT",
        help="the first of the ports on 127.0.0.1, which follow each other; default: %(default)s",
    )
    return DevOptions(**vars(parser.parse_args(arguments)))


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add the option for the directory."""
    parser.add_argument(
        "--directory", type=Path, default=DIRECTORY, help="for tables, Kafka, keys and logs; default: build/dev"
    )


@dataclass(frozen=True, slots=True)
class DevPaths(PlatformFolder):
    """The files and folders of one directory."""

    def heartbeat(self, name: str) -> Path:
        """Return the file that a job touches while it is healthy; jobs of one process append their names."""
        return self.directory / "logs" / f"{name}.heartbeat"


def address(port: int) -> str:
    """Return the URL of a port on this machine."""
    return f"http://{HOST}:{port}"
