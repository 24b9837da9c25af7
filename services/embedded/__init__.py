"""Kafka and a schema registry as child processes of one program, for a laptop without Docker and for tests.

They know nothing of events, tables or Spark: whoever starts them gets two addresses.
"""

from services.embedded.errors import ServiceError
from services.embedded.kafka import EmbeddedKafka
from services.embedded.registry import EmbeddedRegistry
from services.embedded.together import EmbeddedServices

__all__ = ["EmbeddedKafka", "EmbeddedRegistry", "EmbeddedServices", "ServiceError"]
