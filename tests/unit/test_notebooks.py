"""Notebooks are stored as people wrote them: without what running them gave, short, and explained."""

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest

from gamelake.model.errors import SettingsError
from gamelake.trino import TrinoAccess
from notebooks.__main__ import NAMES
from notebooks.settings import REPOSITORY, NotebookSettings

FOLDER = REPOSITORY / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
_LONGEST_CELL = 12
_LONGEST_LINE = 120


def read(path: Path) -> Any:  # noqa: ANN401 # a notebook's parts have no types
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # it says not


def test_every_notebook_can_be_run_by_name() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(NAMES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_running_it_gave(path: Path) -> None:
    notebook = read(path)

    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook.metadata.keys() <= {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebooks_cells_are_short_and_begin_with_a_text(path: Path) -> None:
    cells = read(path).cells

    assert cells[0].cell_type == "markdown"
    for cell in cells:
        lines = cell.source.splitlines()
        assert 1 <= len(lines) <= _LONGEST_CELL
        assert max(map(len, lines)) <= _LONGEST_LINE
        if cell.cell_type == "code":
            ast.parse(cell.source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebooks_worked_questions_are_there(path: Path) -> None:
    asked = {
        node.args[0].value
        for cell in read(path).cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "question"
        if isinstance(node.args[0], ast.Constant)
    }

    assert asked <= {file.stem for file in (REPOSITORY / "sql/questions").glob("*.sql")}
    assert bool(asked) == (path.stem == "analyst")


def test_a_notebook_is_given_the_tables_or_the_address_of_trino() -> None:
    with pytest.raises(SettingsError, match="neither GAMELAKE_LAKEHOUSE nor GAMELAKE_TRINO_URL"):
        NotebookSettings.from_env({})

    settings = NotebookSettings.from_env({"GAMELAKE_TRINO_URL": "http://trino:8080", "GAMELAKE_LAKEHOUSE": ""})
    assert settings.trino == TrinoAccess("trino", 8080, "http", "analyst")
    assert settings.lakehouse is None


def test_a_malformed_address_of_trino_is_named() -> None:
    with pytest.raises(SettingsError, match="GAMELAKE_TRINO_URL is 'trino:8080'"):
        NotebookSettings.from_env({"GAMELAKE_TRINO_URL": "trino:8080"})
