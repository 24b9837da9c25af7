"""The library's wheel has all that its modules read."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files_of(package: Path) -> set[Path]:
    """All files of a package, by their paths in it."""
    return {file.relative_to(package) for file in package.rglob("*") if file.is_file()}


def test_files_that_modules_read_are_in_the_wheel(tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "gamelake", tmp_path / "gamelake", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    build = (
        sys.executable,
        "-c",
        "import setuptools; setuptools.setup()",
        "--quiet",
        "build_py",
        "--build-lib",
        "wheel",
    )

    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)

    assert files_of(tmp_path / "wheel" / "gamelake") == files_of(source)
