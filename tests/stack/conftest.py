"""The stack that `make test-stack` has brought up."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from minio import Minio
from pyspark.sql import SparkSession
from urllib3.exceptions import HTTPError

from gamelake.model.errors import SettingsError
from gamelake.objects.store import shared_credentials
from gamelake.session import spark_session
from tests.embedded import conftest as embedded
from tests.embedded.sending import Sender
from tests.stack.fault_proxy import FaultProxy
from tests.stack.object_store import ROOT, ObjectStore
from tests.stack.platform import SECRETS, Stack, stack_sender
from tests.stack.s3_lakehouse import S3Lakehouse, Services
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.java import spark_environment
from tools.embedded.process import ServiceMissingError
from tools.stack import StackError

JARS = ROOT / "build/jars/spark"


@pytest.fixture(scope="session")
def stack(missing_service: Callable[[str], NoReturn]) -> Stack:
    stack = Stack()
    try:
        running = stack.is_healthy("ingest-events")
    except StackError as error:
        missing_service(f"no Docker engine answers: {error}")
    if not running:
        missing_service("the stack is not up: make test-stack brings it up")
    return stack


# Kafka and the registry as child processes, for tests that need of the stack only its object store.
services, kafka, registry, topic = embedded.services, embedded.kafka, embedded.registry, embedded.topic


@pytest.fixture(scope="session")
def object_store(missing_service: Callable[[str], NoReturn]) -> ObjectStore:
    """An S3 store, the stack's or another one: nothing else of the stack need be up."""
    try:
        store = ObjectStore.of_the_tests()
        store.client.list_buckets()
    except (SettingsError, HTTPError) as error:
        missing_service(f"no object store answers: {error}")
    return store


@pytest.fixture(scope="session")
def uploads(stack: Stack) -> Minio:
    """The bucket of files, with the key of a client that uploads."""
    key = shared_credentials(SECRETS / "object-store-uploads", "default")
    endpoint = stack.lakehouse.options["AWS_ENDPOINT_URL"]
    return ObjectStore(endpoint, key["AWS_ACCESS_KEY_ID"], key["AWS_SECRET_ACCESS_KEY"]).client


@pytest.fixture
def bucket(object_store: ObjectStore) -> Iterator[str]:
    """A bucket of the test's own."""
    with object_store.new_bucket() as name:
        yield name


@pytest.fixture(scope="session")
def session_proxy(object_store: ObjectStore) -> Iterator[FaultProxy]:
    """A proxy in front of the object store, for sessions that outlive a test."""
    with FaultProxy(object_store.endpoint).running() as proxy:
        yield proxy


@pytest.fixture
def proxy(session_proxy: FaultProxy) -> FaultProxy:
    """The proxy without what other tests have asked of it."""
    session_proxy.forget()
    return session_proxy


@pytest.fixture(scope="session")
def spark_through_proxy(
    session_proxy: FaultProxy, object_store: ObjectStore, missing_service: Callable[[str], NoReturn]
) -> Iterator[SparkSession]:
    """A session as the jobs have it, on the object store behind the proxy."""
    try:
        os.environ |= spark_environment()
    except ServiceMissingError as error:
        missing_service(str(error))
    keys = {"AWS_ACCESS_KEY_ID": object_store.access_key, "AWS_SECRET_ACCESS_KEY": object_store.secret_key}
    os.environ.update(keys)
    session = spark_session("tests", object_store.at(session_proxy.url).location("s3://any"), JARS)
    yield session
    session.stop()
    for name in keys:
        del os.environ[name]


@pytest.fixture
def own_services(kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic: Callable[[int], str]) -> Services:
    """A topic of the test's own with two partitions, and a registry."""
    return Services(kafka.bootstrap_servers, registry.url, topic(2))


@pytest.fixture
def s3_lakehouse(tmp_path: Path, object_store: ObjectStore, bucket: str, own_services: Services) -> S3Lakehouse:
    return S3Lakehouse.on(object_store, f"s3://{bucket}/lake", tmp_path, own_services)


@pytest.fixture
def own_sender(own_services: Services) -> Sender:
    """Sends to the test's own topic."""
    return Sender(own_services.bootstrap_servers, own_services.registry_url, own_services.topic)


@pytest.fixture
def sender(stack: Stack) -> Sender:
    """Sends to the stack's topic as a game would."""
    return stack_sender()
