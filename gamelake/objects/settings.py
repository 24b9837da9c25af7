"""Settings of the lakehouse: location, credentials of the object store, and settings of jobs over all tables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment, failpoint_setting
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Kill
from gamelake.objects.store import Location, shared_credentials

_S3_VARIABLES = {
    "GAMELAKE_S3_ENDPOINT": "AWS_ENDPOINT_URL",
    "GAMELAKE_S3_REGION": "AWS_REGION",
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN": "AWS_SESSION_TOKEN",
}
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LakehouseSettings:
    """The lakehouse's location.

    Attributes:
        location: the URI from GAMELAKE_LAKEHOUSE, and the options of an object store.
    """

    location: Location

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the location from environment variables.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        uri = env.required("GAMELAKE_LAKEHOUSE").rstrip("/")
        if not uri.startswith(("file:///", "s3://")):
            raise SettingsError(f"GAMELAKE_LAKEHOUSE is '{uri}'; it must start with file:/// or s3://")
        if "%" in uri:
            # Hadoop does not decode a percent-encoded path, but other programs do: there would be two lakehouses.
            raise SettingsError(f"GAMELAKE_LAKEHOUSE is '{uri}'; write its path as it is, without percent-encoding")
        if uri.startswith("s3://"):
            return cls(location=Location(uri=uri, options=_s3_options(variables)))
        return cls(location=Location(uri=uri, synced=True))


def landing(variables: Mapping[str, str]) -> Location:
    """Return the location of arriving files: a bucket in the same object store as the tables, or a folder.

    Raises:
        SettingsError: GAMELAKE_LANDING is missing or malformed.
    """
    uri = Environment(variables).required("GAMELAKE_LANDING")
    try:
        return LakehouseSettings.from_env({**variables, "GAMELAKE_LAKEHOUSE": uri}).location
    except SettingsError as error:
        raise SettingsError(str(error).replace("GAMELAKE_LAKEHOUSE", "GAMELAKE_LANDING")) from error


def _s3_options(variables: Mapping[str, str]) -> dict[str, str]:
    env = Environment(variables)
    file, profile = env.optional("AWS_SHARED_CREDENTIALS_FILE", ""), env.optional("AWS_PROFILE", "default")
    if file and not env.optional("AWS_ACCESS_KEY_ID", ""):
        variables = {**variables, **shared_credentials(Path(file), profile)}
    options = {option: variables[name] for name, option in _S3_VARIABLES.items() if variables.get(name)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def local_compaction_bytes(env: Environment) -> int:
    """Return the size limit in bytes up to which the job compacts files in its own process, without Spark.

    Raises:
        SettingsError: GAMELAKE_COMPACT_HERE_MIB is malformed.
    """
    return env.whole("GAMELAKE_COMPACT_HERE_MIB", 64, 1, 1_024) * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Settings of a job over all tables.

    Attributes:
        lakehouse: the location of the tables.
        games_file: the contract with the games.
        spark_jars: the folder of jars for a local Spark session; None for the session of `spark-submit`.
        kill: the failpoint at which a test kills the job; None in production.
        local_compaction_bytes: see `local_compaction_bytes`.
    """

    lakehouse: LakehouseSettings
    games_file: Path
    spark_jars: Path | None = None
    kill: Kill | None = None
    local_compaction_bytes: int = 64 * _MIB

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings from environment variables.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            lakehouse=LakehouseSettings.from_env(variables),
            games_file=Path(env.required("GAMELAKE_GAMES_FILE")),
            spark_jars=env.path("GAMELAKE_SPARK_JARS"),
            kill=failpoint_setting(env),
            local_compaction_bytes=local_compaction_bytes(env),
        )
