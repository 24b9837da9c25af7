"""Compares the jars that Maven has fetched with a list: `python -m tools.supply_chain.jar_hashes check|write`.

Maven itself compares a jar with a checksum of the same place, which shows damage and not forgery. The list,
`compose/jars.sha256`, is in the format of sha256sum, and has no jar of our own.
"""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LIST = "compose/jars.sha256"
_FOLDERS = ("build/jars/kafka", "build/jars/model", "build/jars/spark", "build/registry")
_OUR_OWN = "gamelake-"
_MOST_NAMED = 5


def fetched(project: Path) -> dict[str, str]:
    """Return the SHA-256 of each fetched jar, by its path in the project."""
    paths = (path for folder in _FOLDERS for path in (project / folder).rglob("*.jar"))
    return {
        str(path.relative_to(project)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
        if not path.name.startswith(_OUR_OWN)
    }


def read(project: Path) -> dict[str, str]:
    """Read the list into the form that `fetched` returns."""
    lines = (project / LIST).read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def write(project: Path) -> None:
    """Replace the list with the fetched jars."""
    lines = (f"{digest}  {path}\n" for path, digest in fetched(project).items())
    (project / LIST).write_text("".join(lines), encoding="utf-8")


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return a line for each jar that is missing, not listed, or different from the listed one."""
    return [
        f"{path} is missing" if path not in found
        else f"{path} is not in {LIST}" if path not in wanted
        else f"{path} has another SHA-256"
        for path in sorted(dict(wanted.items() ^ found.items()))
    ]  # fmt: skip


def main(step: str) -> int:
    """Check or write the list; 1 if the check has found a difference."""
    if step == "write":
        write(REPOSITORY)
        return 0
    found = differences(read(REPOSITORY), fetched(REPOSITORY))
    for line in found[:_MOST_NAMED]:
        print(f"gamelake: {line}", file=sys.stderr)
    if found:
        print(
            f"gamelake: {len(found)} jars differ from {LIST}: after a change of versions in a pom run make lock; "
            "otherwise remove them from ~/.m2/repository and find out where they come from.",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
