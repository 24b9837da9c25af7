"""The settings of the jobs: the one place that reads the environment.

It knows what each job needs to know; nothing of what a job does with it.
"""

from gamelake.settings.environment import Environment
from gamelake.settings.gold import GoldSettings
from gamelake.settings.ingest import IngestSettings
from gamelake.settings.kafka import KafkaSettings
from gamelake.settings.kpis import KpiSettings
from gamelake.settings.lakehouse import LakehouseSettings
from gamelake.settings.person import PersonSettings
from gamelake.settings.tables import TableSettings
from gamelake.settings.validation import ValidationSettings
from gamelake.settings.vault import VaultKeysSettings, VaultSettings

__all__ = [
    "Environment",
    "GoldSettings",
    "IngestSettings",
    "KafkaSettings",
    "KpiSettings",
    "LakehouseSettings",
    "PersonSettings",
    "TableSettings",
    "ValidationSettings",
    "VaultKeysSettings",
    "VaultSettings",
]
