"""JVMs in the stack map the archive of classes of their image: without it each start takes a third more CPU time."""

import pytest

from tests.stack.platform import Stack

# Prints for each JVM of the container how many of its mappings are of the archive. A process may have another name.
_MAPPINGS = r"""
for process in /proc/[0-9]*; do
  case "$(tr '\0' '\n' <$process/cmdline | head -n 1)" in *java) grep -c {archive} $process/maps ;; esac
done
"""
_SPARK = "pyspark/jars.jsa"


@pytest.mark.parametrize(
    ("service", "archive"),
    [
        ("ingest-events", _SPARK),
        ("serving", _SPARK),
        ("spark-history", _SPARK),
        ("spark-master", _SPARK),
        ("spark-worker", _SPARK),
        ("kafka", "/opt/kafka/classes.jsa"),
        ("registry", "/opt/registry/classes.jsa"),
        ("trino", "/usr/lib/trino/classes.jsa"),
    ],
)
def test_each_jvm_of_a_service_maps_the_archive(stack: Stack, service: str, archive: str) -> None:
    stack.await_health(service)

    script = f"{_MAPPINGS.format(archive=archive)} true"
    mappings = stack.compose("exec", "--no-TTY", service, "sh", "-c", script).split()

    assert mappings
    assert "0" not in mappings
