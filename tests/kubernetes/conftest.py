"""The cluster that `make test-kubernetes` has brought up, with the chart installed."""

import os
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from tests.kubernetes.platform import Cluster


@pytest.fixture(scope="session")
def cluster(missing_service: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    if "GAMELAKE_TEST_CHART" not in os.environ:
        missing_service("no cluster: make test-kubernetes brings one up")
    found = Cluster()
    yield found
    found.close()
