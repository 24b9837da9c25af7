"""The memory of a container, as the kernel's control groups report it."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.container import CONTAINER_MEMORY, CONTAINER_MEMORY_LIMIT, ContainerMemoryCollector

VERSION_1 = {
    "memory/memory.usage_in_bytes": "1000\n",
    "memory/memory.limit_in_bytes": "4000\n",
    "memory/memory.stat": "cache 400\ntotal_inactive_file 300\n",
}
VERSION_2 = {"memory.current": "1000\n", "memory.max": "4000\n", "memory.stat": "anon 600\ninactive_file 300\n"}


def collected(folder: Path, files: dict[str, str]) -> tuple[float | None, float | None]:
    """Memory and limit that a container with these control group files reports."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    registry = CollectorRegistry()
    registry.register(ContainerMemoryCollector(folder))
    return registry.get_sample_value(CONTAINER_MEMORY), registry.get_sample_value(CONTAINER_MEMORY_LIMIT)


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_pages_that_can_be_freed_are_not_memory_in_use(tmp_path: Path, files: dict[str, str]) -> None:
    assert collected(tmp_path, files) == (700, 4000)


@pytest.mark.parametrize(
    "files",
    [
        VERSION_1 | {"memory/memory.limit_in_bytes": "9223372036854771712\n"},
        VERSION_2 | {"memory.max": "max\n"},
        {},
        VERSION_2 | {"memory.stat": "anon 600\n"},
    ],
    ids=["version 1 without a limit", "version 2 without a limit", "no control groups", "another format"],
)
def test_without_a_limit_or_a_known_format_there_is_no_metric(tmp_path: Path, files: dict[str, str]) -> None:
    assert collected(tmp_path, files) == (None, None)
