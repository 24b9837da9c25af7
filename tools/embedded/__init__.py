"""Kafka, a schema registry and the gateway as child processes, for a laptop without Docker and for tests.

They do not know events, tables or Spark; their addresses are given to the process that starts them.
"""

from tools.embedded.kafka import EmbeddedKafka
from tools.embedded.kafka_with_registry import EmbeddedServices
from tools.embedded.process import ServiceError
from tools.embedded.registry import EmbeddedRegistry

__all__ = ["EmbeddedKafka", "EmbeddedRegistry", "EmbeddedServices", "ServiceError"]
