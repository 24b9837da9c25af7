"""The settings of the job that reads files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from gamelake.model.environment import Environment
from gamelake.objects.settings import landing
from gamelake.objects.store import Location
from gamelake.streaming.driver.settings import IngestSettings, shared
from gamelake.streaming.files.chooser import OverwritePolicy
from gamelake.streaming.files.plan import MIB, FileLimits

NOTIFICATIONS = "files.notifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """The settings of the job.

    Attributes:
        reading: the settings of the stream of notifications.
        subject: files are read with the newest usable schema of this subject.
        landing: where files arrive.
        prefix: of the keys of the files that are read.
        limits: the largest size of a file.
        overwritten: the policy for overwritten files.
        remembered: the time for which an object's identity is kept.
        events_stream: the name of the stream that reads events from Kafka.
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
            overwritten=env.choice("GAMELAKE_FILES_OVERWRITTEN", OverwritePolicy, OverwritePolicy.READ),
            events_stream=env.optional("GAMELAKE_STREAM", "ingest_events"),
            remembered=timedelta(days=env.whole("GAMELAKE_FILES_REMEMBERED_DAYS", 14, 1, 366)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSourcesSettings:
    """The settings of both ingest jobs in one process: each has its own metrics port and heartbeat file.

    Attributes:
        events: of the job that reads events from Kafka.
        files: of the job that reads files.
    """

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
