"""The SDK works in a game without other code: it needs Python and one HTTP client."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

import services.sdk

FOLDER = Path(services.sdk.__file__).parent
ALLOWED = {"urllib3", "services.sdk"}
COUNT_EXPORTS = "import sys; sys.path[:0] = sys.argv[1:]; import my_sdk; print(len(my_sdk.__all__))"


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "services.sdk" if node.level else node.module or ""


@pytest.mark.parametrize("module", sorted(FOLDER.rglob("*.py")), ids=lambda module: str(module.name))
def test_a_module_imports_only_python_itself_and_the_http_client(module: Path) -> None:
    foreign = [
        name
        for name in imported(module.read_text())
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)
    ]

    assert foreign == []


def test_a_copy_under_another_name_needs_only_the_http_client(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "my_sdk")
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "urllib3").symlink_to(Path(urllib3.__file__).parent)

    command = [sys.executable, "-I", "-S", "-c", COUNT_EXPORTS, str(tmp_path), str(packages)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert int(output) == len(services.sdk.__all__)


def test_all_exported_names_exist() -> None:
    assert all(hasattr(services.sdk, name) for name in services.sdk.__all__)
