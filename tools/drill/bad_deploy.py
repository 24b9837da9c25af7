"""A bad version of the ingest job: its contract takes the events of two games for each other's."""

from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import msgspec

from gamelake.model.games import load_games
from gamelake.model.naming import SILVER_EVENTS
from tools.drill.environment import Ground
from tools.embedded.service import REPOSITORY

_FOLDER = REPOSITORY / "build" / "drill"
OVERLAY = _FOLDER / "bad-deploy.yaml"
_CONTRACT, _BAD_CONTRACT = REPOSITORY / "contracts" / "games.yaml", _FOLDER / "bad-games.yaml"
_DEPLOYED = _FOLDER / "deployed-at"
_IN_THE_CONTAINER = "/opt/bad-games.yaml"


def prepare(ground: Ground) -> None:
    """Write the bad contract, and the overlay that deploys it; both games have tables that can be set back."""
    sent = ground.other.send(Event())
    ground.wait_for("rows of the other game", lambda: sent <= ground.rows(ground.other.table).keys())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    _BAD_CONTRACT.write_text(swapped(_CONTRACT, ground.game.name, ground.other.name))
    service = {
        "environment": {"GAMELAKE_GAMES_FILE": _IN_THE_CONTAINER},
        "volumes": [f"{_BAD_CONTRACT}:{_IN_THE_CONTAINER}:ro"],
    }
    OVERLAY.write_bytes(msgspec.yaml.encode({"services": {"ingest-events": service}}))


def swapped(contract: Path, first: str, second: str) -> str:
    """The contract with what matches two games the other way round."""
    text, waiting = contract.read_text(), "\0"
    names = {game.name: f"match: [{game.game_name}]" for game in load_games(contract).games}
    return (
        text.replace(names[first], waiting, 1).replace(names[second], names[first], 1).replace(waiting, names[second])
    )


def note_the_time(_: Ground) -> None:
    """The bad version comes now."""
    _DEPLOYED.write_text(datetime.now(UTC).isoformat())


def has_wrong_rows(ground: Ground) -> bool:
    """Whether events of the game that plays are in the other one's table."""
    return bool(ground.rows(ground.other.table).keys() & ground.game.acknowledged)


def restore_arguments(ground: Ground) -> list[str]:
    """What the restore is asked for: both games' tables and the one of all games, as they were before it came."""
    tables = [ground.game.table, ground.other.table, SILVER_EVENTS]
    return [*tables, "--time", _DEPLOYED.read_text(), "--bring-back", "--yes"]
