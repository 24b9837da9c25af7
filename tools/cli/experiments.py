"""Signs files with a game's experiments for clients that assign players offline."""

from datetime import timedelta
from pathlib import Path

import msgspec

from gamelake.contract.experiments import EXPERIMENTS_FILE, load_experiments
from gamelake.contract.games import load_games
from gamelake.contract.metrics import METRICS_FILE, load_metrics
from gamelake.contract.published_experiments import Validity, create_key, now, publish, read_key
from gamelake.model.errors import SettingsError
from tools.embedded.service import REPOSITORY

MOST_DAYS, DAYS = 366, 30


class PublicKey(msgspec.Struct, frozen=True):
    """A public key that clients need, and its id."""

    key: str
    public: str


def new_key(file: Path) -> PublicKey:
    """Create a signing key.

    Raises:
        SettingsError: the file exists, or can't be written.
    """
    key = create_key(file)
    return PublicKey(key.id, key.public)


def public_key(file: Path) -> PublicKey:
    """Return the public key of a signing key.

    Raises:
        SettingsError: the file is not a signing key.
    """
    key = read_key(file)
    return PublicKey(key.id, key.public)


def write_file(game: str, key: Path, out: Path, days: int = DAYS, contracts: Path = REPOSITORY / "contracts") -> Path:
    """Write a file with a game's experiments; it replaces an older one in one step.

    Args:
        game: the game's name in games.yaml.
        key: the file of the signing key.
        out: the file to write.
        days: how long clients accept the file.
        contracts: the folder of the contracts.

    Raises:
        ContractError: a contract is wrong; names file and line.
        SettingsError: the game is unknown, the key can't be read, or the file can't be written.
    """
    games, metrics = load_games(contracts / "games.yaml"), load_metrics(contracts / METRICS_FILE)
    zone = next((each.time_zone for each in games.games if each.name == game), None)
    if zone is None:
        raise SettingsError(f"games.yaml does not have the game '{game}'")
    experiments = load_experiments(contracts / EXPERIMENTS_FILE, games, metrics).experiments
    content = publish(experiments, game, read_key(key), Validity(now(), timedelta(days=days)), zone)
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(out)
    except OSError as error:
        raise SettingsError(f"'{out}' can't be written: {error.strerror}") from None
    return out
