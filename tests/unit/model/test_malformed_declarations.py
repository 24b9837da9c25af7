"""Whatever a declaration contains, it is read, or refused with its file's name: nothing else is raised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamelake.contract import access, experiments, games, located_yaml, schedule
from gamelake.model.errors import ContractError
from gamelake.observability import faults
from gamelake.quality import rules
from gamelake.serving.players import contract as segments
from gamelake.streaming import message_mapping
from services.provision import declarations
from tests.unit.model.declared_files import EXTREMES, GAMES, LOADERS, RULES, refused_or_read

MODULES = (access, experiments, games, schedule, faults, rules, segments, message_mapping, declarations)


def test_each_loader_is_tried_here() -> None:
    there = {
        found
        for module in MODULES
        for name, found in vars(module).items()
        if name.startswith("load_") and found.__module__ == module.__name__
    }
    assert there == LOADERS.keys()
    assert {load for load in there if not hasattr(load, "__wrapped__")} == set()


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.__name__)
def test_the_shipped_file_is_read(load: Callable[..., Any]) -> None:
    path, _ = LOADERS[load]
    assert refused_or_read(load, Path(path)) == ""


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.__name__)
def test_an_extreme_file_is_refused_with_its_name(load: Callable[..., Any], extreme: str, tmp_path: Path) -> None:
    path = tmp_path / "declared.yaml"
    path.write_bytes(EXTREMES[extreme])
    assert refused_or_read(load, path)


@pytest.mark.parametrize(
    ("extreme", "line"),
    [
        ("another encoding", RULES.count(b"\n") + 1),
        ("a control character", RULES.count(b"\n") + 1),
        ("a day that does not exist", 2),
        ("aliases that double", 17),
    ],
)
def test_the_error_names_the_line(extreme: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "declared.yaml"
    path.write_bytes(EXTREMES[extreme])
    with pytest.raises(ContractError, match=rf"declared\.yaml:{line}: "):
        located_yaml.load_located(path)


@pytest.mark.parametrize(
    "key", ["5", "1.5", "2026-01-01", "[]", "'a.'", "'[a'", "'.'", "''", "'a` - at `$.'", '"a\\n]"']
)
def test_an_unexpected_key_is_refused_with_its_line(key: str, tmp_path: Path) -> None:
    text = Path("contracts/access.yaml").read_text(encoding="utf-8")
    path = tmp_path / "declared.yaml"
    path.write_text(text.replace("tables_of_all_games:", f"tables_of_all_games:\n  {key}: game_name"), encoding="utf-8")
    line = text[: text.index("tables_of_all_games:")].count("\n") + 1
    with pytest.raises(ContractError, match=rf"declared\.yaml:({line}|{line + 1}): "):
        access.load_access(path, GAMES)
