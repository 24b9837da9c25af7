"""Programs that stand in for those of a machine, in a folder of a test."""

from pathlib import Path


def add_program(path: Path, text: str) -> Path:
    """Write a program that can be started, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
