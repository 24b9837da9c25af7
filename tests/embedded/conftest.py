"""A real Kafka and a real registry, started once for all tests of this folder."""

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from tests.embedded.gateway import Gateway, audit_topic_of
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender
from tools.embedded import EmbeddedKafka, EmbeddedRegistry, EmbeddedServices
from tools.embedded.kafka import create_topic, delete_topic
from tools.embedded.postgres import EmbeddedPostgres
from tools.embedded.process import ServiceMissingError

GATEWAY_PARTITIONS = 3


@pytest.fixture(scope="session")
def services(
    tmp_path_factory: pytest.TempPathFactory, missing_service: Callable[[str], NoReturn]
) -> Iterator[EmbeddedServices]:
    """Kafka and the registry, running."""
    both = EmbeddedServices(tmp_path_factory.mktemp("services"))
    try:
        both.start()
    except ServiceMissingError as error:
        missing_service(str(error))
    yield both
    both.stop()


@pytest.fixture(scope="session")
def kafka(services: EmbeddedServices) -> EmbeddedKafka:
    """A running Kafka that all tests share: leave it running."""
    return services.kafka


@pytest.fixture(scope="session")
def registry(services: EmbeddedServices) -> EmbeddedRegistry:
    """A running registry that all tests share: leave it running."""
    return services.registry


@pytest.fixture(scope="session")
def postgres(missing_service: Callable[[str], NoReturn]) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL that all tests share: leave it running."""
    # In a folder that the user it runs as can enter, which pytest's own are not.
    with tempfile.TemporaryDirectory(prefix="gamelake-postgres-") as folder:
        server = EmbeddedPostgres(Path(folder))
        try:
            server.start()
        except ServiceMissingError as error:
            missing_service(str(error))
        yield server
        server.stop()


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> Iterator[Callable[..., str]]:
    """Makes a topic of a random name with a number of partitions, and its settings; it is deleted after the test."""
    names: list[str] = []

    def make(partitions: int, config: Mapping[str, str] | None = None) -> str:
        name = f"test-{uuid.uuid4().hex}"
        create_topic(kafka.bootstrap_servers, name, partitions, config or {})
        names.append(name)
        return name

    yield make
    for name in names:
        delete_topic(kafka.bootstrap_servers, name)


@pytest.fixture(scope="module")
def open_gateway(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry
) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways with given settings, each with its own topic."""
    gateways: list[Gateway] = []

    def open_one(certificates: Path | None = None, **settings: str) -> Gateway:
        topic = f"gateway-{uuid.uuid4().hex}"
        create_topic(kafka.bootstrap_servers, topic, GATEWAY_PARTITIONS)
        create_topic(kafka.bootstrap_servers, audit_topic_of(topic), 1)
        gateway = Gateway.open(
            tmp_path_factory.mktemp("gateway"),
            bootstrap_servers=kafka.bootstrap_servers,
            registry_url=registry.url,
            topic=topic,
            certificates=certificates,
            **settings,
        )
        gateways.append(gateway)
        return gateway

    yield open_one
    for gateway in gateways:
        gateway.process.stop()
        delete_topic(kafka.bootstrap_servers, gateway.topic)
        delete_topic(kafka.bootstrap_servers, audit_topic_of(gateway.topic))


@pytest.fixture
def lakehouse(
    tmp_path: Path,
    kafka: EmbeddedKafka,
    registry: EmbeddedRegistry,
    topic: Callable[[int], str],
    request: pytest.FixtureRequest,
) -> Lakehouse:
    """An empty lakehouse, fed by a topic of its own with two partitions."""

    def spark() -> SparkSession:
        # Started by the first test that needs it.
        session: SparkSession = request.getfixturevalue("spark")
        return session

    return Lakehouse(tmp_path, kafka.bootstrap_servers, registry.url, topic(2), spark=spark)


@pytest.fixture
def sender(lakehouse: Lakehouse) -> Sender:
    """Sends to the lakehouse's topic."""
    return Sender(lakehouse.bootstrap_servers, lakehouse.registry_url, lakehouse.topic)
