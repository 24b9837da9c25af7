"""Copies the topic of events into files until it is stopped, like Amazon Data Firehose.

A file has the events of one partition, and is written when it is large enough or its first event has waited long
enough. Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it writes unfinished files and ends.
"""

import argparse

from gamelake.observability.metrics.endpoint import registry_of_process, served
from gamelake.program import OK, run, stop_event
from gamelake.storage.store import Store
from services.delivery.copier import TopicCopier
from services.delivery.metrics import DeliveryMetrics
from services.delivery.settings import DeliverySettings


def main() -> int:
    """Copy until SIGTERM."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    settings = DeliverySettings.from_env()
    registry = registry_of_process()
    copier = TopicCopier(settings, Store(settings.landing), DeliveryMetrics(registry))
    with served(registry, settings.telemetry):
        copier.run(stop_event())
    return OK


if __name__ == "__main__":
    run(main)
