"""Runs the notebooks and saves the results: `python -m notebooks [NAME ...]`, all by default."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import requests

from gamelake.command import command_parser
from gamelake.model.errors import GamelakeError
from notebooks.running import run
from notebooks.settings import REPOSITORY, NotebookSettings
from tools import stack
from tools.embedded.java import spark_environment
from tools.embedded.ports import HOST

NAMES = ("analyst", "engineer", "streaming")
OK, FAILED = 0, 1
_ANSWER_SECONDS = 2
_URL, _CREDENTIALS_FILE = "GAMELAKE_TRINO_URL", "GAMELAKE_TRINO_CREDENTIALS_FILE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected notebooks, and print the paths of the results."""
    parser = command_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build/notebooks", help="folder for the results")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"there is no notebook '{unknown.pop()}', but {', '.join(NAMES)}")
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
    if _URL not in variables:
        found |= _stacks_trino()
    return found | dict(variables)


def _stacks_trino() -> dict[str, str]:
    """Settings by which a notebook reaches the local stack's Trino; empty while it does not run."""
    address = f"{stack.scheme()}://{HOST}:{stack.ports()['TRINO_PORT']}"
    authority = str(stack.AUTHORITY) if stack.is_encrypted() else ""
    try:
        answer = requests.get(f"{address}/v1/info", timeout=_ANSWER_SECONDS, verify=authority or True)
    except OSError:
        return {}
    if "nodeVersion" not in answer.text:
        return {}
    trusted = {"REQUESTS_CA_BUNDLE": authority} if authority else {}
    return {_URL: address, _CREDENTIALS_FILE: str(stack.trino_credentials("analyst")), **trusted}


if __name__ == "__main__":
    sys.exit(main())
