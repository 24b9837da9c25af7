"""The settings of the job that reads files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.storage.settings import landing
from gamelake.storage.store import Location
from gamelake.streaming.files.chooser import OverwritePolicy
from gamelake.streaming.files.plan import MIB, FileLimits
from gamelake.streaming.settings import IngestSettings, shared

NOTIFICATIONS = "files.notifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """The settings of the job; `reading` are those of the stream of notifications.

    Files are read by the newest schema of `subject`; `events_stream` is the stream that reads events from Kafka.
    """

    reading: IngestSettings
    subject: str
    landing: Location
    prefix: str
    limits: FileLimits
    overwritten: OverwritePolicy
    remembered: timedelta
    events_stream: str

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        reading = IngestSettings.from_env(
            {
                **variables,
                "GAMELAKE_STREAM": env.optional("GAMELAKE_FILES_STREAM", "ingest_files"),
                "GAMELAKE_TOPIC": env.optional("GAMELAKE_NOTIFICATIONS_TOPIC", NOTIFICATIONS),
                # With 0 Spark would query the topic's ends continuously, and files are less frequent.
                "GAMELAKE_TRIGGER_SECONDS": str(env.number("GAMELAKE_FILES_TRIGGER_SECONDS", 1, 0, 86_400)),
                "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": str(env.whole("GAMELAKE_FILES_PER_BATCH", 5_000, 1, 10**6)),
            }
        )
        return cls(
            reading=reading,
            subject=f"{env.required('GAMELAKE_TOPIC')}-value",
            landing=landing(variables),
            prefix=env.optional("GAMELAKE_LANDING_PREFIX", ""),
            limits=FileLimits(
                stored_bytes=env.whole("GAMELAKE_FILE_MAX_MIB", 256, 1, 1024) * MIB,
                decompressed_bytes=env.whole("GAMELAKE_FILE_MAX_DECOMPRESSED_MIB", 1024, 1, 2047) * MIB,
            ),
            overwritten=_overwritten(env.optional("GAMELAKE_FILES_OVERWRITTEN", OverwritePolicy.READ)),
            events_stream=env.optional("GAMELAKE_STREAM", "ingest_events"),
            remembered=timedelta(days=env.whole("GAMELAKE_FILES_REMEMBERED_DAYS", 14, 1, 366)),
        )


def _overwritten(text: str) -> OverwritePolicy:
    try:
        return OverwritePolicy(text)
    except ValueError:
        known = " or ".join(each.value for each in OverwritePolicy)
        raise SettingsError(f"GAMELAKE_FILES_OVERWRITTEN is '{text}'; it must be {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSourcesSettings:
    """The settings of both ingest jobs in one process: each has its own metrics port and heartbeat file."""

    events: IngestSettings
    files: FilesSettings

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        return cls(
            events=IngestSettings.from_env(shared(variables, "events", 0)),
            files=FilesSettings.from_env(shared(variables, "files", 1)),
        )
