"""The machine and the versions that figures were measured with."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.results import MachineInfo
from tools.embedded.java import find_java_home

_PACKAGES = ("pyspark", "deltalake", "ptars", "pyarrow", "confluent-kafka", "protobuf")


def this_machine(spark_jars: Path, kafka_jars: Path) -> MachineInfo:
    """Describe the machine; versions of jars are read from their names."""
    return MachineInfo(
        cores=os.cpu_count() or 0,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cpu_model=cpu_model(),
        system=f"{platform.system()} {platform.release()}",
        versions={
            **{package: version(package) for package in _PACKAGES},
            "python": platform.python_version(),
            "java": _java_version(),
            "delta": _jar_version(spark_jars, "delta-spark_"),
            "kafka": _jar_version(kafka_jars, "kafka_"),
        },
    )


def short_commit(repository: Path) -> str:
    """The commit that is checked out; "unknown" outside of git."""
    command = ("git", "-C", str(repository), "rev-parse", "--short", "HEAD")
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def cpu_model() -> str:
    """The model name of the processor."""
    information = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", information.read_text(), re.MULTILINE) if information.exists() else None
    return found[1] if found else platform.processor()


def _java_version() -> str:
    release = find_java_home() / "release"
    found = re.search(r'^JAVA_VERSION="(.+)"$', release.read_text(), re.MULTILINE) if release.is_file() else None
    return found[1] if found else "unknown"


def _jar_version(folder: Path, prefix: str) -> str:
    names = [path.stem for path in folder.glob(f"{prefix}*.jar")]
    return min(names, key=len).rsplit("-", 1)[-1] if names else "unknown"
