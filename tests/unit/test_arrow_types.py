"""An array of a comprehension says its type: Arrow infers null for an empty list, which joins and kernels refuse."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gamelake", "services", "jobs")


def untyped(module: ast.Module) -> Iterator[int]:
    """Yield the lines of calls such as `pa.array([f(x) for x in xs])`."""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "pa.array"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.ListComp | ast.GeneratorExp)
            and not any(word.arg == "type" for word in node.keywords)
        ):
            yield node.lineno


def test_an_array_of_a_comprehension_says_its_type() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for line in untyped(ast.parse(file.read_text()))
    ]

    assert not found


def test_an_array_without_a_type_is_found() -> None:
    assert list(untyped(ast.parse("a = pa.array([n for n in ns])\nb = pa.array([n for n in ns], pa.int64())"))) == [1]
