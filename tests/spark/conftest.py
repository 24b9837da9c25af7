"""One local Spark session for all tests of this folder, and records as Kafka would deliver them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from gamelake.session import spark_session
from gamelake.storage.store import Location
from tools.embedded.java import spark_environment
from tools.embedded.process import ServiceMissingError

JARS = Path(__file__).parents[2] / "build" / "jars" / "spark"


@pytest.fixture(scope="session")
def spark(missing_service: Callable[[str], NoReturn]) -> Iterator[SparkSession]:
    """A session as the jobs have it."""
    try:
        os.environ |= spark_environment()
    except ServiceMissingError as error:
        missing_service(str(error))
    if not list(JARS.glob("*.jar")):
        missing_service("Spark's jars are not there: run make setup")
    session = spark_session("tests", Location(uri="file:///"), JARS)
    yield session
    session.stop()
