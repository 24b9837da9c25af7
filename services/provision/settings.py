"""The settings of the provisioning programs, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from gamelake.kafka import KafkaAccess, kafka_access, read_credentials
from gamelake.model.credentials import ServerCredentials
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.schemas.event_schemas import registry_writer

COMPOSE = Path(__file__).parents[2] / "compose"
SECRETS = Path("/run/secrets")
PATIENCE_SECONDS = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSettings:
    """Access to Kafka as its admin, the other users, and the file that declares topics and rights."""

    kafka: KafkaAccess
    admin: str
    users: tuple[ServerCredentials, ...]
    file: Path
    patience: timedelta

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed, or a user's secret is.
        """
        env = Environment(variables)
        admin = _secret(env, "kafka-admin")
        credentials = read_credentials(admin)
        return cls(
            kafka=replace(kafka_access(env), credentials=credentials),
            admin=credentials.username,
            users=tuple(read_credentials(file) for file in sorted(admin.parent.glob("kafka-*")) if file != admin),
            file=_declaration(env, "PROVISION_TOPICS_FILE", "kafka/topics.yaml"),
            patience=_patience(env),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketsSettings:
    """Address of the object store, the users' keys, and the file that declares buckets and users."""

    endpoint: str
    secrets: Path
    file: Path
    patience: timedelta

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        endpoint = env.required("GAMELAKE_S3_ENDPOINT").rstrip("/")
        parts = urlsplit(endpoint)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path:
            raise SettingsError(f"GAMELAKE_S3_ENDPOINT is '{endpoint}'; it must be like http://object-store:9000")
        return cls(
            endpoint=endpoint,
            secrets=Path(env.optional("PROVISION_SECRETS", str(SECRETS))),
            file=_declaration(env, "PROVISION_BUCKETS_FILE", "object-store/buckets.yaml"),
            patience=_patience(env),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasesSettings:
    """Address of PostgreSQL, its superuser's password, and the file that declares roles and databases."""

    host: str
    superuser: str = field(repr=False)
    secrets: Path
    file: Path
    patience: timedelta

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is malformed, or the superuser's secret can't be read.
        """
        env = Environment(variables)
        password = _secret(env, "postgres-password")
        try:
            superuser = password.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{password} can't be read: run 'make up', which creates it") from error
        return cls(
            host=env.optional("PROVISION_POSTGRES_HOST", "postgres"),
            superuser=superuser,
            secrets=password.parent,
            file=_declaration(env, "PROVISION_DATABASES_FILE", "postgres/databases.yaml"),
            patience=_patience(env),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectsSettings:
    """Address of the registry, and the file that declares the subjects' compatibility."""

    url: str
    writer: ServerCredentials | None
    file: Path
    patience: timedelta

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            url=env.required("GAMELAKE_REGISTRY_URL").rstrip("/"),
            writer=registry_writer(env),
            file=_declaration(env, "PROVISION_SUBJECTS_FILE", "registry/subjects.yaml"),
            patience=_patience(env),
        )


def _declaration(env: Environment, variable: str, in_compose: str) -> Path:
    return Path(env.optional(variable, str(COMPOSE / in_compose)))


def _secret(env: Environment, name: str) -> Path:
    return Path(env.optional("PROVISION_SECRETS", str(SECRETS))) / name


def _patience(env: Environment) -> timedelta:
    return timedelta(seconds=env.number("PROVISION_PATIENCE_SECONDS", PATIENCE_SECONDS, 1, 3_600))
