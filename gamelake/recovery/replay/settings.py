"""The settings of the jobs that decode records again."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.games import load_games
from gamelake.schemas.schema_cache import SchemaWait, schema_wait
from gamelake.storage.settings import TableSettings
from gamelake.streaming.plan import ChunkLimits, TaskPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What a replay needs to know."""

    tables: TableSettings
    registry_url: str
    schema_wait: SchemaWait
    rules: Path | None = None
    chunk_records: int = 500_000

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            tables=TableSettings.from_env(variables),
            registry_url=env.required("GAMELAKE_REGISTRY_URL"),
            chunk_records=env.whole("GAMELAKE_CHUNK_RECORDS", 500_000, 1, 10**8),
            schema_wait=schema_wait(env),
            rules=env.path("GAMELAKE_RULES"),
        )

    def decoding(self) -> TaskPlan:
        """How the tasks decode.

        Raises:
            ContractError: the games contract is impossible.
        """
        return TaskPlan(
            lakehouse=self.tables.lakehouse.location,
            registry_url=self.registry_url,
            topic="",  # each record brings its own
            contract=load_games(self.tables.games_file),
            schema_wait=self.schema_wait,
            chunk=ChunkLimits(records=self.chunk_records),
        )
