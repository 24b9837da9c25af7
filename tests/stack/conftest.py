"""The stack that `make test-stack` has brought up."""

import subprocess
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from urllib3.exceptions import HTTPError

from gamelake.errors import SettingsError
from gamelake.kafka import KafkaAccess, read_credentials
from tests.embedded.sending import Sender
from tests.stack.object_store import ObjectStore
from tests.stack.platform import SECRETS, Stack

REGISTRY_URL = "http://127.0.0.1:8081/apis/ccompat/v7"
BOOTSTRAP_SERVERS = "127.0.0.1:19092"


@pytest.fixture(scope="session")
def stack(missing_service: Callable[[str], NoReturn]) -> Stack:
    """The running stack."""
    stack = Stack()
    try:
        running = stack.is_healthy("ingest")
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        missing_service(f"no Docker engine answers: {error}")
    if not running:
        missing_service("the stack is not up: make test-stack brings it up")
    return stack


@pytest.fixture(scope="session")
def object_store(missing_service: Callable[[str], NoReturn]) -> ObjectStore:
    """An S3 store, the stack's or another one: nothing else of the stack need be up."""
    try:
        store = ObjectStore.of_the_tests()
        store.client.list_buckets()
    except (SettingsError, HTTPError) as error:
        missing_service(f"no object store answers: {error}")
    return store


@pytest.fixture
def bucket(object_store: ObjectStore) -> Iterator[str]:
    """A bucket of the test's own."""
    with object_store.new_bucket() as name:
        yield name


@pytest.fixture
def sender(stack: Stack) -> Sender:
    """Sends to the stack's topic as a game would."""
    access = KafkaAccess(BOOTSTRAP_SERVERS, read_credentials(SECRETS / "kafka-simulator"))
    return Sender(BOOTSTRAP_SERVERS, REGISTRY_URL, "events", access.for_clients())
