"""The event that is sent: a new one each time, of a game of the contract, in the newest schema version."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.message_factory import GetMessageClass

from gamelake.contracts.games import GameSpec, load_games
from gamelake.errors import RegistryUnavailableError, SettingsError
from gamelake.wire.event_schemas import load_schemas, register
from gamelake.wire.framing import frame_header
from services.smoke.errors import StepFailedError
from services.smoke.journey import NEXT_COMMANDS, Step
from services.smoke.settings import SmokeSettings

# Analysts can leave such events out by it.
EVENT_NAME = "smoke_test"
GAMER = "smoke"
VERSIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeEvent:
    """An event as Kafka gets it, and what it can be found again by."""

    event_id: str
    game: GameSpec
    schema_id: int
    key: bytes
    value: bytes


def choose_game(settings: SmokeSettings, name: str | None) -> GameSpec:
    """The named game of the contract, or its first one.

    Raises:
        SettingsError: the contract has no such game.
    """
    games = load_games(settings.contracts / "games.yaml").games
    if name is None:
        return games[0]
    for game in games:
        if game.name == name:
            return game
    raise SettingsError(
        f"contracts/games.yaml names no game '{name}'; it has {games[0].name} and {len(games) - 1} more"
    )


def make_event(settings: SmokeSettings, game: GameSpec) -> SmokeEvent:
    """Register the contract's schemas, as every producer does, and make one event that happens now.

    Raises:
        StepFailedError: the registry did not answer, or refused a schema.
    """
    # All versions in order, like the simulator: a subject that begins with the newest would refuse the older ones.
    schemas = load_schemas(settings.contracts, VERSIONS)
    try:
        ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic)
    except RegistryUnavailableError as error:
        raise StepFailedError(Step.ENCODED, str(error), NEXT_COMMANDS[Step.ENCODED]) from error
    event_id = str(uuid.uuid4())
    message = GetMessageClass(schemas[-1].message)(
        event_id=event_id, event_name=EVENT_NAME, game_name=game.game_name, gamer_id=GAMER
    )
    message.event_time.FromDatetime(datetime.now(UTC))  # type: ignore[attr-defined] # its class is made at run time
    return SmokeEvent(
        event_id=event_id,
        game=game,
        schema_id=ids[-1],
        key=GAMER.encode(),
        value=frame_header(ids[-1]) + message.SerializeToString(),
    )
