"""Runs the notebooks and saves the results: `python -m notebooks [analyst] [engineer]`, both by default."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from gamelake.model.errors import GamelakeError
from notebooks.running import run
from notebooks.settings import REPOSITORY, NotebookSettings
from tools.embedded.java import spark_environment

NAMES = ("analyst", "engineer")
OK, FAILED = 0, 1
_STACKS_TRINO = "http://127.0.0.1:8080"
_ANSWER_SECONDS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected notebooks, and print the paths of the results."""
    parser = argparse.ArgumentParser(prog="python -m notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build/notebooks", help="folder for the results")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"there is no notebook '{unknown.pop()}', but {' and '.join(NAMES)}")
    try:
        environment = _environment(os.environ)
        NotebookSettings.from_env(environment)
        for name in options.names or NAMES:
            output = options.output / f"{name}.ipynb"
            run(REPOSITORY / "notebooks" / f"{name}.ipynb", output, environment)
            print(output)
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return OK


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment of the notebooks: what is set, with defaults for Spark's jars and the local Trino if it runs."""
    found = {
        **spark_environment(),
        "GAMELAKE_SPARK_JARS": str(REPOSITORY / "build/jars/spark"),
    }
    if "GAMELAKE_TRINO_URL" not in variables and _is_trino(_STACKS_TRINO):
        found["GAMELAKE_TRINO_URL"] = _STACKS_TRINO
    return found | dict(variables)


def _is_trino(url: str) -> bool:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/v1/info")
        return b"nodeVersion" in connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
