"""The settings of replay, backfill and restore."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.objects.settings import TableSettings
from gamelake.recovery.replay.identities import DAY, ReplayWindows
from gamelake.schemas.limits import SchemaLimits, schema_limits
from gamelake.schemas.schema_cache import SchemaWait, schema_wait
from gamelake.streaming.message_mapping import load_event_contract
from gamelake.streaming.plan import ChunkLimits, TaskPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Settings of a replay.

    Attributes:
        tables: the lakehouse, the games contract and Spark.
        registry_url: address of the schema registry.
        schema_wait: how long decoders wait for a schema.
        schema_limits: limits of a schema.
        rules: file of the rules; None for none.
        chunk_records: number of records that a task decodes before it writes files.
        windows: the times for which streams remember events.
    """

    tables: TableSettings
    registry_url: str
    schema_wait: SchemaWait
    schema_limits: SchemaLimits
    rules: Path | None = None
    chunk_records: int = 500_000
    windows: ReplayWindows = field(default_factory=ReplayWindows)

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
            schema_limits=schema_limits(env),
            rules=env.path("GAMELAKE_RULES"),
            windows=ReplayWindows(
                of_records=env.whole("GAMELAKE_DEDUP_WINDOW_SECONDS", 600, 0, DAY),
                of_files=env.whole("GAMELAKE_FILES_REMEMBERED_DAYS", 14, 1, 366) * DAY,
            ),
        )

    def decoding(self) -> TaskPlan:
        """Return the decoding part of the tasks' plan.

        Raises:
            ContractError: the games contract is invalid.
        """
        return TaskPlan(
            lakehouse=self.tables.lakehouse.location,
            registry_url=self.registry_url,
            topic="",  # each record has its own
            contract=load_event_contract(self.tables.games_file),
            schema_wait=self.schema_wait,
            schema_limits=self.schema_limits,
            chunk=ChunkLimits(records=self.chunk_records),
        )
