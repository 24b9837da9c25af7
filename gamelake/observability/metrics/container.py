"""The memory of the container that a process runs in: its JVM and its workers are other processes of the container."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gamelake.observability.metrics import declared

CONTAINER_MEMORY = "gamelake_container_memory_bytes"
CONTAINER_MEMORY_LIMIT = "gamelake_container_memory_limit_bytes"
CONTROL_GROUPS = Path("/sys/fs/cgroup")
# Version 1 of control groups has this order of magnitude for "no limit", version 2 the word max.
_UNLIMITED = 2**60


@dataclass(frozen=True, slots=True)
class _Files:
    """Names of a control group's files, relative to the mounted control groups."""

    used: str
    limit: str
    statistics: str
    inactive: str


_VERSIONS = (
    _Files("memory.current", "memory.max", "memory.stat", "inactive_file"),
    _Files(
        "memory/memory.usage_in_bytes",
        "memory/memory.limit_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


class ContainerMemoryCollector(Collector):
    """The container's memory and its limit; neither where there is no limit, as outside of containers.

    Args:
        folder: where control groups are mounted; in a container its own.
    """

    def __init__(self, folder: Path = CONTROL_GROUPS) -> None:
        self._folder = folder

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield both gauges, or none."""
        for files in _VERSIONS:
            try:
                used, limit = self._read(files)
            except (OSError, ValueError, KeyError):
                continue
            if limit < _UNLIMITED:
                for name, value in ((CONTAINER_MEMORY, used), (CONTAINER_MEMORY_LIMIT, limit)):
                    family = declared.gauge_family(name)
                    family.add_metric((), value)
                    yield family
            return

    def _read(self, files: _Files) -> tuple[int, int]:
        """Bytes in use and their limit.

        Raises:
            OSError: there are no control groups of this version.
            ValueError: there is no limit, or the files have another format.
            KeyError: the statistics lack a figure.
        """
        statistics = dict(line.split() for line in (self._folder / files.statistics).read_text("ascii").splitlines())
        used = int((self._folder / files.used).read_text("ascii"))
        # Pages of files that were not read lately are freed before a process is ended.
        return max(used - int(statistics[files.inactive]), 0), int((self._folder / files.limit).read_text("ascii"))
