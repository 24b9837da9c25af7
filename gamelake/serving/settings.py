"""The settings of the serving process: gold with its KPIs, and live operations."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gamelake.serving.gold.settings import GoldSettings
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.streaming.driver.settings import shared


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """The settings of both jobs, which differ only in their telemetry.

    Attributes:
        gold: the settings of the job that refreshes gold tables and KPIs.
        live_ops: the settings of the live-ops job.
    """

    gold: GoldSettings
    live_ops: LiveOpsSettings

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings from environment variables.

        Args:
            variables: the variables by name.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(
            gold=GoldSettings.from_env(shared(variables, "gold", 0)),
            live_ops=LiveOpsSettings.from_env(shared(variables, "live_ops", 1)),
        )
