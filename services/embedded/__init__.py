"""Kafka, a schema registry and the front door as child processes, for a laptop without Docker and for tests.

They know nothing of events, tables or Spark: whoever starts them gets their addresses.
"""

from services.embedded.errors import ServiceError
from services.embedded.kafka import EmbeddedKafka
from services.embedded.registry import EmbeddedRegistry
from services.embedded.together import EmbeddedServices

__all__ = ["EmbeddedKafka", "EmbeddedRegistry", "EmbeddedServices", "ServiceError"]
