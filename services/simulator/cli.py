"""The command line: what a person may ask of the simulator."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from services.simulator.spec import Shares

_CONTRACTS = Path(__file__).parents[2] / "contracts"
_DEFAULTS = Shares()
_SHARES = {
    "late": "events that are hours to 3 days old",
    "future": "events up to 20 hours ahead",
    "duplicate": "events that are sent twice",
    "undecodable": "values that no reader can decode",
    "unknown_game": "events of games that the contract does not name",
    "null_time": "events without an event_time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A parsed command line; `rate` 0 is as fast as possible, `history` None is for the rate to decide."""

    bootstrap_servers: str
    kafka_credentials_file: Path | None
    registry_url: str
    topic: str
    contracts: Path
    games: int
    versions: int
    rate: int
    events: int
    seed: int
    players: int | None
    history: timedelta
    ledger: Path | None
    shares: Shares


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line, or leave with a message."""
    given = vars(_parser().parse_args(arguments))
    shares = Shares(**{name: given.pop(name) for name in _SHARES})
    seconds = given.pop("history")
    if seconds is None:
        seconds = 0 if given["rate"] else 300
    return Options(**given, history=timedelta(seconds=seconds), shares=shares)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m services.simulator", description="Make the traffic of mobile games."
    )
    add = parser.add_argument
    add("--bootstrap-servers", required=True, help="Kafka's addresses, host:port, with commas between")
    add(
        "--kafka-credentials-file", type=Path, help="a file with username=... and password=...; default: none are asked"
    )
    add("--registry-url", required=True, help="the schema registry's Confluent API")
    add("--topic", default="game-events", help="default: %(default)s")
    add("--contracts", type=Path, default=_CONTRACTS, help="folder of games.yaml and proto/; default: the repository's")
    add("--games", type=int, default=30, help="how many of the contract's games are played; default: %(default)s")
    add("--versions", type=int, default=3, help="newest schema version in the mix; default: %(default)s")
    add("--rate", type=int, default=0, help="events per second; default: as fast as possible")
    add("--events", type=int, default=1_000_000, help="events in the run; default: %(default)s")
    add("--seed", type=int, default=7, help="the same seed makes the same events; default: %(default)s")
    add("--players", type=int, help="how many people play; default: two for five events, at most 400000")
    add(
        "--history",
        type=float,
        metavar="SECONDS",
        help="simulated time that the run covers; default: 0 at a rate, else 300",
    )
    add("--ledger", type=Path, help="file for the accounts; default: standard output")
    shares = parser.add_argument_group("parts of the events, from 0 to 1")
    for name, text in _SHARES.items():
        default = getattr(_DEFAULTS, name)
        shares.add_argument(f"--{name.replace('_', '-')}", type=float, default=default, metavar="SHARE",
                            help=f"{text}; default: %(default)s")  # fmt: skip
    return parser
