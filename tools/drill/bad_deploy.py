"""A faulty deployment of the ingest job: its contract swaps the events of two games."""

from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import msgspec

from gamelake.contract.games import load_games
from gamelake.model.naming import SILVER_EVENTS
from tools.drill.environment import DrillEnvironment
from tools.embedded.service import REPOSITORY

_FOLDER = REPOSITORY / "build" / "drill"
OVERLAY = _FOLDER / "bad-deploy.yaml"
_CONTRACT, _BAD_CONTRACT = REPOSITORY / "contracts" / "games.yaml", _FOLDER / "bad-games.yaml"
_DEPLOYED = _FOLDER / "deployed-at"
_IN_THE_CONTAINER = "/opt/bad-games.yaml"


def prepare(environment: DrillEnvironment) -> None:
    """Write the faulty contract and the compose overlay that deploys it; ensure that both games have tables."""
    sent = environment.other.send(Event())
    environment.wait_for("rows of the other game", lambda: sent <= environment.rows(environment.other.table).keys())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    _BAD_CONTRACT.write_text(swapped(_CONTRACT, environment.game.name, environment.other.name))
    service = {
        "environment": {"GAMELAKE_GAMES_FILE": _IN_THE_CONTAINER},
        "volumes": [f"{_BAD_CONTRACT}:{_IN_THE_CONTAINER}:ro"],
    }
    OVERLAY.write_bytes(msgspec.yaml.encode({"services": {"ingest-events": service}}))


def swapped(contract: Path, first: str, second: str) -> str:
    """Return the contract with the `match` of two games swapped."""
    text, waiting = contract.read_text(), "\0"
    names = {game.name: f"match: [{game.game_name}]" for game in load_games(contract).games}
    return (
        text.replace(names[first], waiting, 1).replace(names[second], names[first], 1).replace(waiting, names[second])
    )


def note_the_time(_: DrillEnvironment) -> None:
    """Record the time of the faulty deployment, which the restore needs."""
    _DEPLOYED.write_text(datetime.now(UTC).isoformat())


def has_wrong_rows(environment: DrillEnvironment) -> bool:
    """Return True if events of the playing game are in the other game's table."""
    return bool(environment.rows(environment.other.table).keys() & environment.game.acknowledged)


def restore_arguments(environment: DrillEnvironment) -> list[str]:
    """Return arguments of the restore: both games' tables and `silver/events`, as before the faulty deployment."""
    tables = [environment.game.table, environment.other.table, SILVER_EVENTS]
    return [*tables, "--time", _DEPLOYED.read_text(), "--replay", "--yes"]
