"""The settings of the serving process: gold, KPIs and live operations in one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gamelake.serving.gold.settings import GoldSettings
from gamelake.serving.kpis.settings import KpiSettings
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.streaming.settings import shared


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
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
            gold=GoldSettings.from_env(shared(variables, "gold", 0)),
            kpis=KpiSettings.from_env(shared(variables, "kpis", 1)),
            live_ops=LiveOpsSettings.from_env(shared(variables, "live_ops", 2)),
        )
