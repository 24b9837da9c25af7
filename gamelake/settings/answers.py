"""The settings of all that makes answers, when it runs in one process."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gamelake.settings.gold import GoldSettings
from gamelake.settings.kpis import KpiSettings
from gamelake.settings.live_ops import LiveOpsSettings

_PORT, _HEARTBEAT = "GAMELAKE_METRICS_PORT", "GAMELAKE_HEARTBEAT_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersSettings:
    """What each job is to know: the same but for its telemetry, which each has for itself."""

    gold: GoldSettings
    kpis: KpiSettings
    live_ops: LiveOpsSettings

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(
            gold=GoldSettings.from_env(_for(variables, "gold", 0)),
            kpis=KpiSettings.from_env(_for(variables, "kpis", 1)),
            live_ops=LiveOpsSettings.from_env(_for(variables, "live_ops", 2)),
        )


def _for(variables: Mapping[str, str], job: str, number: int) -> Mapping[str, str]:
    """The variables with ports one after the other, and a file for each job."""
    changed = dict(variables)
    if (port := variables.get(_PORT, "")).isdigit():
        changed[_PORT] = str(int(port) + number)
    if file := variables.get(_HEARTBEAT):
        changed[_HEARTBEAT] = f"{file}.{job}"
    return changed
