"""A public class has a name of its own, so that a search or an error message leads to one place."""

import ast
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("gamelake", "services", "jobs", "tools", "benchmarks", "monitoring")


def test_no_two_public_classes_have_the_same_name() -> None:
    places = defaultdict(list)
    for path in sorted(file for folder in FOLDERS for file in (REPOSITORY / folder).rglob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                places[statement.name].append(path.relative_to(REPOSITORY).as_posix())

    assert {name: files for name, files in places.items() if len(files) > 1} == {}
