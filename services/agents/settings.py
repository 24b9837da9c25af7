"""The settings of the MCP server, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from gamelake.model.environment import Environment
from gamelake.trino import TrinoAccess, trino_access


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """The limits of a call: the first three bound the query in Trino, the others its answer."""

    seconds: int = 30
    cpu_seconds: int = 60
    scanned_mib: int = 1024
    rows: int = 200
    answer_bytes: int = 100_000

    @property
    def session(self) -> Mapping[str, str]:
        """The session properties by which Trino ends a query."""
        return {
            "query_max_run_time": f"{self.seconds}s",
            "query_max_cpu_time": f"{self.cpu_seconds}s",
            "query_max_scan_physical_bytes": f"{self.scanned_mib}MB",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of the MCP server; docs/settings.md explains each variable."""

    trino: TrinoAccess
    limits: AnswerLimits = field(default_factory=AnswerLimits)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            trino=trino_access(
                env,
                url="GAMELAKE_TRINO_URL",
                credentials_file="GAMELAKE_TRINO_CREDENTIALS_FILE",
                user="GAMELAKE_TRINO_USER",
                default_user="analyst",
            ),
            limits=AnswerLimits(
                seconds=env.whole("GAMELAKE_AGENTS_SECONDS", 30, 1, 600),
                cpu_seconds=env.whole("GAMELAKE_AGENTS_CPU_SECONDS", 60, 1, 3_600),
                scanned_mib=env.whole("GAMELAKE_AGENTS_SCANNED_MIB", 1_024, 1, 1_048_576),
                rows=env.whole("GAMELAKE_AGENTS_ROWS", 200, 1, 10_000),
                answer_bytes=env.whole("GAMELAKE_AGENTS_ANSWER_BYTES", 100_000, 1_000, 10_000_000),
            ),
        )
