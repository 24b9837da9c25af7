"""Runs all cells of a notebook in a separate process."""

from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from gamelake.model.errors import GamelakeError
from notebooks.settings import REPOSITORY

_CELL_SECONDS = 300


class NotebookError(GamelakeError):
    """A cell of a notebook failed."""


def run(notebook: Path, output: Path, environment: Mapping[str, str]) -> nbformat.NotebookNode:
    """Run a notebook and write it with the outputs of its cells; after a failure, up to the failed cell.

    Raises:
        NotebookError: a cell failed, or exceeded the time limit.
    """
    book: nbformat.NotebookNode = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call] # it says not
    place = {"metadata": {"path": str(REPOSITORY)}}
    client = NotebookClient(book, timeout=_CELL_SECONDS, kernel_name="python3", resources=place)
    try:
        client.execute(env=dict(environment))
    except CellExecutionError as error:
        # The text of the error is the coloured stack trace; it is in the written notebook.
        raise NotebookError(f"{notebook.name}: {error.ename}: {error.evalue}; the cell is in {output}") from error
    except CellTimeoutError as error:
        raise NotebookError(f"{notebook.name}: a cell took more than {_CELL_SECONDS} s; it is in {output}") from error
    finally:
        output.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(book, output)  # type: ignore[no-untyped-call] # it says not
    return book
