"""Finds the Java that the services run on, by the same rule as `compose/prerequisites.sh`."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.embedded.process import ServiceMissingError
from tools.embedded.service import REPOSITORY

OLDEST = 21
INSTALLED = (
    "/usr/lib/jvm/*",
    "{home}/.sdkman/candidates/java/*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
PACKAGED = REPOSITORY / "build" / "java"  # the one that `make java` installs


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the first Java 21 or newer: of JAVA_HOME, the `java` on the PATH, the usual places or `make java`.

    Raises:
        ServiceMissingError: there is none.
    """
    for home in _candidates(environment):
        if (home / "bin" / "java").is_file() and java_version(home) >= OLDEST:
            return home
    raise ServiceMissingError(
        f"a JDK {OLDEST} or newer is missing: run make java, or install one, or set JAVA_HOME to it"
    )


def spark_environment() -> dict[str, str]:
    """Return environment variables by which a local Spark finds Java, Python and the project.

    Raises:
        ServiceMissingError: there is no Java.
    """
    return {"JAVA_HOME": str(find_java_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}


def java_version(home: Path) -> int:
    """Return the major version in the `release` file of a Java home; 0 if there is none."""
    release = home / "release"
    if not release.is_file():
        return 0
    stated = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(errors="replace"), re.MULTILINE)
    return int(stated[1]) if stated else 0


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    yield from _home_of_java_on_path(environment)
    for pattern in INSTALLED:
        folder = pattern.format(home=environment.get("HOME", "/nonexistent"))
        yield from sorted(Path("/").glob(folder.lstrip("/")))
    yield PACKAGED


def _home_of_java_on_path(environment: Mapping[str, str]) -> Iterator[Path]:
    java = shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        return
    # The path of a shim (jenv, asdf) is not the Java home, so the JVM itself prints it.
    command = (java, "-XshowSettings:properties", "-version")
    answer = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    home = re.search(r"^ *java\.home = (.+)$", answer.stderr, re.MULTILINE)
    if home:
        yield Path(home[1])
