"""Damaged declarations, and the programs that read one again while they run."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from gamelake.model.errors import ContractError, StartupError
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.quality.checking import check_rules
from gamelake.quality.rules_in_force import WatchedRules
from services.catalog.errors import ViewRefusedError
from services.catalog.views import ViewFiles
from services.gateway.authentication import Keyring
from services.gateway.flags.experiments import ExperimentFlags
from tests.unit.gateway.events import contract
from tests.unit.model.declared_files import LOADERS, damaged, refused_or_read
from tests.unit.poison.budgets import budget
from tests.unit.quality.rules_and_rows import COLUMNS, GAMES

_RULES = b"""\
rules:
  - name: paid
    expect: amount >= 0 and level < 100
    severity: warn
    owner: sales
    why: it is a price
"""
_KEYS = b"keys:\n  - {id: archery-1, game: archery_duel, secrets: [a-secret-that-only-a-test-could-love]}\n"
_VAULT_KEYS = b"""\
index: aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWk=
current: first
keys:
  first: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=
"""
_VIEW = Path("sql/views/gold/players.sql")
_GAMES_FILE = Path("contracts/games.yaml")


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that reads a file again while it runs.

    Attributes:
        good: the content of the file at the start.
        start: starts the program on the file. It returns a function by which the program reads the file again.
    """

    good: bytes
    start: Callable[[Path], Callable[[], object]]


def _rules_of(file: Path) -> Callable[[], object]:
    rules = WatchedRules(file.parent, partial(check_rules, columns=COLUMNS, games=GAMES))
    return lambda: rules.now().rules.fingerprint


def _game_keys_of(file: Path) -> Callable[[], object]:
    keys = Keyring(file, contract())

    def used() -> object:
        keys.refresh()
        return {key.id: key for key in keys.all_keys()}

    return used


def _vault_keys_of(file: Path) -> Callable[[], object]:
    keys = VaultKeyring(file)

    def used() -> object:
        keys.refresh()
        return keys.now.current, keys.now.ids, keys.now.token("a", "b")

    return used


def _experiments_of(file: Path) -> Callable[[], object]:
    flags = ExperimentFlags(file, _GAMES_FILE)

    def used() -> object:
        flags.refresh()
        return {game.name: [each.spec for each in flags.all_of(game.name)] for game in contract().games}

    used()
    if not flags.is_known:
        raise ContractError(f"{file} has an error")
    return used


def _views_of(files: ViewFiles) -> Callable[[], object]:
    used = files.wanted(frozenset())

    def again() -> object:
        nonlocal used
        with suppress(ViewRefusedError):
            used = files.wanted(frozenset())
        return used

    return again


def _views_by(games_file: Path) -> Callable[[], object]:
    shutil.copy(_GAMES_FILE.with_name("metrics.yaml"), games_file.parent)
    return _views_of(ViewFiles(_VIEW.parents[1], games_file))


READERS = {
    "rules.yaml": Reader(_RULES, _rules_of),
    "ingest-keys.yaml": Reader(_KEYS, _game_keys_of),
    "vault-keys.yaml": Reader(_VAULT_KEYS, _vault_keys_of),
    "experiments.yaml": Reader(Path("contracts/experiments.yaml").read_bytes(), _experiments_of),
    "views/gold/players.sql": Reader(
        _VIEW.read_bytes(), lambda file: _views_of(ViewFiles(file.parents[1], _GAMES_FILE))
    ),
    "games.yaml": Reader(_GAMES_FILE.read_bytes(), _views_by),
}
_LOADERS = list(LOADERS)
# The name of a file and its content, or the number of a loader and the content of its file.
DeclarationAttack = tuple[str | int, bytes]
DECLARATION_ATTACKS: st.SearchStrategy[DeclarationAttack] = st.one_of(
    *[st.tuples(st.just(name), damaged(reader.good)) for name, reader in READERS.items()],
    *[st.tuples(st.just(number), damaged(Path(LOADERS[load][0]).read_bytes())) for number, load in enumerate(_LOADERS)],
)


def check_declaration_attack(attack: DeclarationAttack, folder: Path) -> None:
    """Damage a declaration; it must be read, or refused with its file and a line, and what runs must continue."""
    target, content = attack
    with budget():
        if isinstance(target, int):
            path = folder / "declared.yaml"
            path.write_bytes(content)
            refused_or_read(_LOADERS[target], path)
        else:
            _check_running(READERS[target], folder / target, content)


def _check_running(reader: Reader, file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    _replace(file, reader.good)
    used = reader.start(file)
    before = used()
    _replace(file, content)
    now = used()
    try:
        valid = reader.start(file)()
    except (StartupError, ViewRefusedError):
        valid = before
    assert now == valid, "a program that runs does not use what a new one does, nor what it used before"
    _replace(file, reader.good)
    assert used() == before, "a program does not recover once its file is corrected"


def _replace(file: Path, content: bytes) -> None:
    new = file.with_suffix(".new")
    new.write_bytes(content)
    new.replace(file)
