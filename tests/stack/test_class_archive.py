"""Spark's JVMs in the stack map the image's archive of classes: without it each start takes a third more CPU time."""

import pytest

from tests.stack.platform import Stack

# Prints for each JVM of the container how many of its mappings are of the archive.
_MAPPINGS = "for process in $(pgrep -x java); do grep -c pyspark/jars.jsa /proc/$process/maps; done"


@pytest.mark.parametrize("service", ["ingest-events", "serving", "spark-history", "spark-master", "spark-worker"])
def test_each_jvm_of_a_service_maps_the_archive(stack: Stack, service: str) -> None:
    stack.await_health(service)

    mappings = stack.compose("exec", "--no-TTY", service, "sh", "-c", f"{_MAPPINGS} || true").split()

    assert mappings
    assert "0" not in mappings
