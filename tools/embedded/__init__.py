"""Kafka, a schema registry and the gateway as child processes, for a laptop without Docker and for tests.

They know nothing of events, tables or Spark: whoever starts them gets their addresses.
"""

from tools.embedded.kafka import EmbeddedKafka
from tools.embedded.kafka_with_registry import EmbeddedServices
from tools.embedded.process import ServiceError
from tools.embedded.registry import EmbeddedRegistry

__all__ = ["EmbeddedKafka", "EmbeddedRegistry", "EmbeddedServices", "ServiceError"]
