"""The files that a program is made of are those of its modules and of all that these import."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.dev.imports import files_of
from tools.embedded.service import REPOSITORY


def written(root: Path, **files: str) -> None:
    """Write modules, by their names with `__` for dots."""
    for name, text in files.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()


def test_imports_are_followed_through_packages_and_functions(tmp_path: Path) -> None:
    written(
        tmp_path,
        jobs__work="from parts.first import thing\nimport json\n",
        parts__first="def thing():\n    import parts.second\n",
        parts__second="from parts import third\n",
        parts__third="",
        parts__unused="",
    )

    found = {file.relative_to(tmp_path).as_posix() for file in files_of(["jobs.work"], tmp_path)}

    assert found == {
        "jobs/__init__.py", "jobs/work.py", "parts/__init__.py", "parts/first.py", "parts/second.py", "parts/third.py",
    }  # fmt: skip


def test_a_file_that_is_being_written_counts_without_its_imports(tmp_path: Path) -> None:
    written(tmp_path, jobs__work="import parts.first", parts__first="def (", parts__second="")

    assert tmp_path / "parts" / "first.py" in files_of(["jobs.work"], tmp_path)


@pytest.mark.parametrize("module", ["jobs.ingest_events", "jobs.serving"])
def test_every_module_that_a_job_loads_at_its_start_is_found(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "print(*{each.__file__ for each in sys.modules.values() if getattr(each, '__file__', None)}, sep='\\n')"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    ours = {Path(line) for line in shown.stdout.splitlines() if line.startswith(f"{REPOSITORY}/")}
    loaded = {file for file in ours if file.relative_to(REPOSITORY).parts[0] in {"gamelake", "jobs"}}

    assert loaded
    assert loaded - files_of([module], REPOSITORY) == set()
