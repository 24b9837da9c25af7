"""The command line of the simulator."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from gamelake.command import command_parser, one_of, whole
from gamelake.model.errors import SettingsError
from tools.simulator.incidents import Incident
from tools.simulator.spec import NEWEST_VERSION, Shares

_CONTRACTS = Path(__file__).parents[2] / "contracts"
_DEFAULTS = Shares()
_SHARES = {
    "late": "events that are hours to 3 days old",
    "future": "events up to 20 hours ahead",
    "duplicate": "events that are sent a second time",
    "undecodable": "values that cannot be decoded",
    "unknown_game": "events of games that the contract does not name",
    "null_time": "events without an event_time",
    "wrong_clock": "events of devices whose clock was reset: two to three years old",
    "unknown_schema": "values whose schema the registry lacks, to Kafka",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """Records go to Kafka directly, as from producers that do not use the gateway."""

    bootstrap_servers: str
    registry_url: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """Events go to the ingest gateway, as from games.

    Attributes:
        acknowledged: file for the ids of acknowledged events, one per line.
    """

    url: str
    keys_file: Path
    acknowledged: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """A parsed command line; `rate` 0 is as fast as possible."""

    target: KafkaTarget | HttpTarget
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
    incidents: tuple[Incident, ...] = ()


def parse(arguments: Sequence[str] | None = None) -> SimulatorOptions:
    """Parse the command line; exits with a message if it is malformed."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    target = _target(parser, given)
    shares = Shares(**{name: given.pop(name) for name in _SHARES})
    seconds = given.pop("history")
    if seconds is None:
        seconds = 0 if given["rate"] else 300
    incidents = tuple(given.pop("incident"))
    return SimulatorOptions(
        **given, incidents=incidents, target=target, history=timedelta(seconds=seconds), shares=shares
    )


def _target(parser: argparse.ArgumentParser, given: dict[str, Any]) -> KafkaTarget | HttpTarget:
    """Move the arguments of the target out of `given`."""
    to_kafka = {name: given.pop(name) for name in ("bootstrap_servers", "registry_url", "topic")}
    to_http = {name: given.pop(name) for name in ("url", "keys_file", "acknowledged")}
    if given.pop("target") == "http":
        _require(parser, to_http, "url", "keys_file")
        return HttpTarget(**to_http)
    _require(parser, to_kafka, "bootstrap_servers", "registry_url")
    return KafkaTarget(**to_kafka)


def _require(parser: argparse.ArgumentParser, given: dict[str, Any], *names: str) -> None:
    missing = [f"--{name.replace('_', '-')}" for name in names if given[name] is None]
    if missing:
        parser.error(f"this target needs {' and '.join(missing)}")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("Simulate the traffic of mobile games.")
    add = parser.add_argument
    add("--target", type=one_of(("http", "kafka")), default="http", help="the gateway, or Kafka; default: %(default)s")
    _add_targets(parser)
    add("--contracts", type=Path, default=_CONTRACTS, help="folder of games.yaml and proto/; default: the repository's")
    add("--games", type=whole(1), default=30, help="how many of the contract's games are played; default: %(default)s")
    add(
        "--versions",
        type=whole(1),
        default=NEWEST_VERSION,
        help="newest schema version in the mix; default: %(default)s",
    )
    add("--rate", type=whole(0), default=0, help="events per second; default: as fast as possible")
    add("--events", type=whole(1), default=1_000_000, help="events in the run; default: %(default)s")
    add("--seed", type=int, default=7, help="the same seed makes the same events; default: %(default)s")
    add("--players", type=whole(1), help="number of players; default: two for five events, at most 400000")
    add(
        "--history",
        type=float,
        metavar="SECONDS",
        help="simulated time that the run covers; default: 0 at a rate, else 300",
    )
    add(
        "--incident",
        type=_incident,
        action="append",
        default=[],
        metavar="KIND/SUBJECT/FROM/TO",
        help="an incident that recurs each day (UTC), such as 'broken_purchases/Kart Rumble/14:00/15:00', "
        "'silence/Yeti Ski/16:00/16:30' or 'crashes/4.4.0/10:00/11:00'; may be given more than once",
    )
    add("--ledger", type=Path, help="file for the ledger of the run; default: standard output")
    _add_shares(parser)
    return parser


def _incident(text: str) -> Incident:
    try:
        return Incident.parse(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_targets(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("--target http").add_argument
    add(
        "--url",
        default=os.environ.get("GAMELAKE_GATEWAY_URL"),
        help="the gateway's address, http://host:port; default: GAMELAKE_GATEWAY_URL",
    )
    add(
        "--keys-file",
        type=Path,
        default=os.environ.get("INGEST_KEYS_FILE"),
        help="the games' keys, as the gateway has them; default: INGEST_KEYS_FILE",
    )
    add("--acknowledged", type=Path, metavar="FILE", help="file for the ids of acknowledged events, one per line")
    add = parser.add_argument_group("--target kafka").add_argument
    add(
        "--bootstrap-servers",
        default=os.environ.get("GAMELAKE_BOOTSTRAP_SERVERS"),
        help="Kafka's addresses, host:port, with commas between; default: GAMELAKE_BOOTSTRAP_SERVERS. "
        "GAMELAKE_KAFKA_* variables have credentials and TLS",
    )
    add(
        "--registry-url",
        default=os.environ.get("GAMELAKE_REGISTRY_URL"),
        help="the schema registry's Confluent API; default: GAMELAKE_REGISTRY_URL",
    )
    add("--topic", default="game-events", help="default: %(default)s")


def _add_shares(parser: argparse.ArgumentParser) -> None:
    shares = parser.add_argument_group("shares of the events, from 0 to 1")
    for name, text in _SHARES.items():
        default = getattr(_DEFAULTS, name)
        shares.add_argument(f"--{name.replace('_', '-')}", type=float, default=default, metavar="SHARE",
                            help=f"{text}; default: %(default)s")  # fmt: skip
