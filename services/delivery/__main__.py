"""Copies the topic of events into files until it is told to stop, as Firehose does.

A file holds the events of one partition, and is written when it is large enough or its first event has waited long
enough. Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after what it holds is written.
"""

import argparse

from gamelake.program import OK, run, stop_event
from gamelake.storage.store import Store
from services.delivery.copier import Copying
from services.delivery.settings import DeliverySettings


def main() -> int:
    """Copy until SIGTERM."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    settings = DeliverySettings.from_env()
    Copying(settings, Store(settings.landing)).run(stop_event())
    return OK


if __name__ == "__main__":
    run(main)
