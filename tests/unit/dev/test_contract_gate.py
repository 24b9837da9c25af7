"""Programs restart with a changed contract only once it is right, and its mistakes are on the terminal."""

import shutil
from pathlib import Path

import pytest

from tools.contracts import problems
from tools.dev.__main__ import example_query
from tools.dev.contract_gate import ContractGate
from tools.dev.options import DIRECTORY
from tools.embedded.service import CONTRACTS, REPOSITORY

GAMES, CODE = CONTRACTS / "games.yaml", REPOSITORY / "jobs" / "gold.py"


def test_what_is_changed_meanwhile_is_held_back_until_the_contract_is_right() -> None:
    lines, wrong = list[str](), ["games.yaml:3: unknown key 'mach'"]
    gate = ContractGate(lines.append, lambda: wrong)

    assert gate.passed({CODE}) == {CODE}
    assert lines == []
    assert gate.passed({GAMES}) == set()
    assert lines[0] == "games.yaml:3: unknown key 'mach'"
    assert "running programs keep the last contracts" in lines[1]
    # A restart for another reason would read the wrong contract.
    assert gate.passed({CODE}) == set()
    assert gate.passed(set()) == set()

    wrong.clear()
    assert gate.passed({GAMES}) == {GAMES, CODE}
    assert gate.passed({CODE}) == {CODE}


@pytest.mark.parametrize(
    ("file", "right", "wrong", "problem"),
    [
        ("games.yaml", "match:", "mach:", "unknown key 'mach'; it must be "),
        ("games.yaml", "refresh: partition", "refresh: partitoin", "did you mean partition?"),
        ("submitted/v4/game_event.proto", "message GameEvent", "mesage GameEvent", "game_event.proto"),
    ],
)
def test_a_mistake_that_stops_a_program_at_its_start_is_found_before(
    tmp_path: Path, file: str, right: str, wrong: str, problem: str
) -> None:
    shutil.copytree(CONTRACTS, tmp_path / "contracts")
    assert list(problems(tmp_path, contracts_only=True)) == []
    changed = tmp_path / "contracts" / file
    assert right in changed.read_text()
    changed.write_text(changed.read_text().replace(right, wrong, 1))

    found = list(problems(tmp_path, contracts_only=True))

    assert any(problem in each for each in found), found


def test_the_closing_hint_reads_the_directory_that_was_chosen(tmp_path: Path) -> None:
    other = tmp_path / "my dev"

    assert example_query(DIRECTORY).startswith("make sql ENGINE=duckdb ON=dev ")
    assert example_query(other).startswith(f"make sql GAMELAKE_LAKEHOUSE='file://{other}/lakehouse' ENGINE=duckdb ")
