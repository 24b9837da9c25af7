"""Runs Kafka, the schema registry and a gateway: `python -m tools.embedded --directory build/embedded`."""

import argparse
import json
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from gamelake.command import command_parser
from gamelake.contract.games import load_games
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.kafka import SYNCED, create_topic
from tools.embedded.kafka_with_registry import EmbeddedServices
from tools.embedded.process import ServiceError
from tools.embedded.service import REPOSITORY

POLL_SECONDS = 0.5
_PARTITIONS = 4
_KEY_RATE = 100_000


def main() -> int:
    """Start the services, print their addresses as one line of JSON, and wait for Ctrl-C or SIGTERM."""
    given = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ExitStack() as running:
            services = running.enter_context(EmbeddedServices(given.directory, SYNCED))
            addresses = {"bootstrap_servers": services.kafka.bootstrap_servers, "registry_url": services.registry.url}
            checks = [services.raise_if_ended]
            if given.gateway:
                gateway = running.enter_context(_gateway(given.directory, services, given.gateway))
                addresses |= {"gateway_url": gateway.url, "keys_file": str(gateway.keys_file)}
                checks.append(gateway.process.raise_if_ended)
            print(json.dumps(addresses), flush=True)
            while True:
                for check in checks:
                    check()
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return 0
    except ServiceError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return 1


def _gateway(directory: Path, services: EmbeddedServices, topic: str) -> EmbeddedGateway:
    """A gateway that writes to a topic, which is created, with new keys for all games of the contract."""
    kafka = services.kafka.bootstrap_servers
    create_topic(kafka, topic, _PARTITIONS)
    backing = GatewayBackend(bootstrap_servers=kafka, registry_url=services.registry.url, topic=topic)
    gateway = EmbeddedGateway(directory / "gateway", backing)
    gateway.make_keys([game.name for game in load_games(REPOSITORY / "contracts" / "games.yaml").games], _KEY_RATE)
    return gateway


def _arguments() -> argparse.Namespace:
    parser = command_parser(
        "Run Kafka and a schema registry on this machine until Ctrl-C; print their addresses as JSON.",
    )
    parser.add_argument("--directory", type=Path, required=True, help="for the services' state and logs")
    parser.add_argument(
        "--gateway", metavar="TOPIC", help="also run a gateway that writes to this topic, with new keys"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
