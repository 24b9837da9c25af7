"""Copies the topic of events into files until it is stopped, like Amazon Data Firehose.

A file has the events of one partition, and is written when it is large enough or its first event has waited long
enough. Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it writes unfinished files and ends.
"""

from gamelake.command import command_parser
from gamelake.objects.store import Store
from gamelake.observability.metrics.endpoint import registry_of_process, served
from gamelake.program import OK, run, stop_event
from services.delivery.copier import TopicCopier
from services.delivery.metrics import DeliveryMetrics
from services.delivery.settings import DeliverySettings


def main() -> int:
    """Copy until SIGTERM."""
    command_parser(__doc__).parse_args()
    settings = DeliverySettings.from_env()
    registry = registry_of_process()
    copier = TopicCopier(settings, Store(settings.landing), DeliveryMetrics(registry))
    with served(registry, settings.telemetry):
        copier.run(stop_event())
    return OK


if __name__ == "__main__":
    run(main)
