"""The files of the repository that a program uses: its modules, and their imports, read without running them."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def files_of(modules: Iterable[str], root: Path) -> frozenset[Path]:
    """Return the files of modules, and of everything under `root` that these import, directly or through others.

    A file that can't be parsed counts, but not what it imports.

    Args:
        modules: full names, such as "jobs.gold".
        root: the folder that the names begin in.
    """
    found: set[Path] = set()
    open_names = list(modules)
    while open_names:
        for file in _files_of(open_names.pop(), root):
            if file not in found:
                found.add(file)
                open_names += _imported(file)
    return frozenset(found)


def _files_of(module: str, root: Path) -> Iterator[Path]:
    """The module's own file, if there is one, and those of the packages around it, which Python runs first."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        folder = root.joinpath(*parts[:end])
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"
        elif folder.with_suffix(".py").is_file():
            yield folder.with_suffix(".py")
            return


def _imported(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Each name may be a module of the package, or a part of it.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
