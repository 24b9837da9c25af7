"""Kafka, a schema registry and the gateway as child processes, for a laptop without Docker and for tests.

They know nothing of events, tables or Spark: whoever starts them gets their addresses.
"""

from tools.embedded.errors import ServiceError
from tools.embedded.kafka import EmbeddedKafka
from tools.embedded.registry import EmbeddedRegistry
from tools.embedded.together import EmbeddedServices

__all__ = ["EmbeddedKafka", "EmbeddedRegistry", "EmbeddedServices", "ServiceError"]
