"""The machine and the versions that figures were measured with."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.results import Machine
from tools.embedded.java import find_java_home
from tools.embedded.kafka import JARS as KAFKA_JARS
from tools.embedded.process import ServiceMissingError
from tools.embedded.service import REPOSITORY

SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"

_PACKAGES = ("pyspark", "deltalake", "ptars", "pyarrow", "confluent-kafka", "protobuf")


def this_machine() -> Machine:
    """Describe the machine; read the versions of jars from their names."""
    return Machine(
        cores=os.cpu_count() or 0,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cpu_model=cpu_model(),
        system=f"{platform.system()} {platform.release()}",
        versions={
            **{package: version(package) for package in _PACKAGES},
            "python": platform.python_version(),
            "java": _java_version(),
            "delta": _jar_version(SPARK_JARS, "delta-spark_"),
            "kafka": _jar_version(KAFKA_JARS, "kafka_"),
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
    try:
        release = find_java_home() / "release"
    except ServiceMissingError:
        return "unknown"
    found = re.search(r'^JAVA_VERSION="(.+)"$', release.read_text(), re.MULTILINE) if release.is_file() else None
    return found[1] if found else "unknown"


def _jar_version(folder: Path, prefix: str) -> str:
    names = [path.stem for path in folder.glob(f"{prefix}*.jar")]
    return min(names, key=len).rsplit("-", 1)[-1] if names else "unknown"
