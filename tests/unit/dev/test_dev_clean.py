"""`make dev-clean` removes the data of `make dev` only when that is confirmed, and nothing else ever."""

from pathlib import Path

import pytest

from tools.dev.clean import main
from tools.dev.directory import occupied


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A directory that `make dev` has used."""
    directory = tmp_path / "dev"
    (directory / "lakehouse").mkdir(parents=True)
    with occupied(directory):
        pass
    return directory


def test_data_are_removed_when_that_is_confirmed(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(used), "--yes"]) == 0
    assert not used.exists()
    assert str(used) in capsys.readouterr().out

    assert main(["--directory", str(used), "--yes"]) == 0
    assert capsys.readouterr().out == "There is nothing to remove.\n"


def test_nothing_is_removed_without_an_answer_or_in_a_dry_run(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--directory", str(used), "--dry-run"]) == 0
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert main(["--directory", str(used)]) == 1
    assert (used / "lakehouse").is_dir()


def test_a_directory_that_is_in_use_or_something_else_is_left_alone(
    used: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with occupied(used):
        assert main(["--directory", str(used), "--yes"]) == 1
    assert main(["--directory", str(tmp_path), "--yes"]) == 1

    assert (used / "lakehouse").is_dir()
    assert capsys.readouterr().err.splitlines() == [
        f"gamelake: make dev runs already in {used}: end it by Ctrl-C first",
        f"gamelake: {tmp_path} is not a directory of make dev",
    ]
