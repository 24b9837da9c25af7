"""Programs that stand in for those of a machine, in a folder of a test, and scripts that are run with them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

Outcome = subprocess.CompletedProcess[str]


def add_program(path: Path, text: str) -> Path:
    """Write a program that can be started, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run_alone(
    command: Sequence[str | Path], programs: Path | None = None, typed: str | None = None, /, **variables: str | Path
) -> Outcome:
    """Run a command that sees these variables alone, and a folder's programs before those of the system."""
    path = f"{programs}:/usr/bin:/bin" if programs else "/usr/bin:/bin"
    environment = {"PATH": path, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(command, env=environment, input=typed, capture_output=True, text=True, check=False)


def lines_of(log: Path) -> list[str]:
    """Return the lines that programs have written to a file; an empty list before the first one."""
    return log.read_text().splitlines() if log.exists() else []
