"""Runs Kafka and the schema registry until Ctrl-C: `python -m services.embedded --directory build/embedded`."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from services.embedded.errors import ServiceError
from services.embedded.together import EmbeddedServices

SECONDS_BETWEEN_LOOKS = 0.5


def main() -> int:
    """Start both, print their addresses as one line of JSON, and wait for Ctrl-C or SIGTERM."""
    directory = _arguments().directory
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with EmbeddedServices(directory) as services:
            addresses = {"bootstrap_servers": services.kafka.bootstrap_servers, "registry_url": services.registry.url}
            print(json.dumps(addresses), flush=True)
            while True:
                services.raise_if_ended()
                time.sleep(SECONDS_BETWEEN_LOOKS)
    except KeyboardInterrupt:
        return 0
    except ServiceError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m services.embedded",
        description="Run Kafka and a schema registry on this machine; print their addresses as JSON; end with Ctrl-C.",
    )
    parser.add_argument("--directory", type=Path, required=True, help="where they keep their state and their logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
