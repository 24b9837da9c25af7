"""Makes and deletes topics, whatever Kafka they are on."""

import time
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # the stubs of `admin` do not export it

from tools.embedded.errors import ServiceError

DEADLINE = timedelta(seconds=30)
SECONDS_BETWEEN_LOOKS = 0.05


def create_topic(
    bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Make a topic and return when its partitions can be written to; one that is there already stays as it is.

    Raises:
        ServiceError: it is there with another number of partitions, or never became writable.
    """
    admin = _admin(bootstrap_servers)
    request = admin.create_topics(
        [NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config))]
    )
    try:
        request[name].result(DEADLINE.total_seconds())
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    found = _wait_for_leaders(admin, name)
    if found != partitions:
        raise ServiceError(f"the topic {name} has {found} partitions, not {partitions}")


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic and its records; one that is not there is deleted already."""
    admin = _admin(bootstrap_servers)
    try:
        admin.delete_topics([name])[name].result(DEADLINE.total_seconds())
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise


def _admin(bootstrap_servers: str) -> AdminClient:
    # Quiet: a client that outlives its broker for a moment would report that on stderr.
    return AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})


def _wait_for_leaders(admin: AdminClient, name: str) -> int:
    latest = time.monotonic() + DEADLINE.total_seconds()
    while time.monotonic() < latest:
        partitions = admin.list_topics(name, timeout=DEADLINE.total_seconds()).topics[name].partitions
        if partitions and all(partition.leader >= 0 for partition in partitions.values()):
            return len(partitions)
        time.sleep(SECONDS_BETWEEN_LOOKS)
    raise ServiceError(f"the topic {name} has partitions that nobody leads")
