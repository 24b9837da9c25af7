"""The command line and the settings of the smoke test."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Self

from gamelake.command import command_parser, number
from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location
from gamelake.trino import TrinoAccess, trino_access

DEFAULT_PATIENCE_SECONDS = 60.0
STREAM = "ingest_events"


class TraceFormat(Enum):
    """The format in which the trace is printed."""

    LINES = auto()
    JSON = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeOptions:
    """A parsed command line; `game` None is the contract's first game."""

    patience: timedelta
    game: str | None
    form: TraceFormat


def parse(arguments: Sequence[str] | None = None) -> SmokeOptions:
    """Parse the command line; exits with a message if it is malformed."""
    parser = command_parser("Send one event and wait until Trino returns it.")
    add = parser.add_argument
    add("--patience", type=number(0.1, 3_600), default=DEFAULT_PATIENCE_SECONDS, metavar="SECONDS",
        help="time limit for all steps together; default: %(default)g")  # fmt: skip
    add("--game", help="a game's name in contracts/games.yaml; default: the first one")
    add("--json", action="store_true", help="print one line of JSON at the end, and nothing else")
    given = parser.parse_args(arguments)
    return SmokeOptions(
        patience=timedelta(seconds=given.patience),
        game=given.game,
        form=TraceFormat.JSON if given.json else TraceFormat.LINES,
    )


CONTRACTS = Path(__file__).parents[2] / "contracts"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeSettings:
    """Addresses that the smoke test sends to and reads from."""

    gateway: str
    keys_file: Path
    kafka: KafkaAccess
    topic: str
    lakehouse: Location
    stream: str
    trino: TrinoAccess
    contracts: Path

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            kafka=kafka_access(env),
            topic=env.required("GAMELAKE_TOPIC"),
            gateway=env.required("GAMELAKE_GATEWAY_URL").rstrip("/"),
            keys_file=Path(env.required("INGEST_KEYS_FILE")),
            lakehouse=LakehouseSettings.from_env(variables).location,
            stream=env.optional("GAMELAKE_STREAM", STREAM),
            trino=trino_access(
                env,
                url="GAMELAKE_TRINO_URL",
                credentials_file="GAMELAKE_TRINO_CREDENTIALS_FILE",
                user="GAMELAKE_TRINO_USER",
                default_user="analyst",
            ),
            contracts=CONTRACTS,
        )
