"""The examples in the docstrings of the library run as they are printed.

An example uses the names of its module, and `location`, the location of an empty lakehouse.
"""

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelake.objects.store import Location

REPOSITORY = Path(__file__).parents[2]
ENTRY_POINTS = 20


def _examples() -> Iterator[doctest.DocTest]:
    for file in sorted(REPOSITORY.glob("gamelake/**/*.py")):
        if "    >>> " in file.read_text():
            name = ".".join(file.relative_to(REPOSITORY).with_suffix("").parts)
            module = importlib.import_module(name.removesuffix(".__init__"))
            yield from (each for each in doctest.DocTestFinder().find(module) if each.examples)


EXAMPLES = {each.name: each for each in _examples()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_docstring_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    example = EXAMPLES[name]
    example.globs["location"] = Location(uri=tmp_path.as_uri())

    outcome = doctest.DocTestRunner().run(example)

    assert outcome.failed == 0, capsys.readouterr().out


def test_the_most_used_entry_points_have_an_example() -> None:
    assert len(EXAMPLES) >= ENTRY_POINTS
