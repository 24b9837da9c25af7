"""Settings: what is missing or malformed is named before any data moves."""

from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.model.credentials import ServerCredentials
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Failpoint, Kill
from gamelake.model.options import TelemetryOptions
from gamelake.objects.settings import LakehouseSettings
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.streaming.driver.settings import IngestSettings

REQUIRED = {
    "GAMELAKE_LAKEHOUSE": "file:///srv/lakehouse/",
    "GAMELAKE_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
    "GAMELAKE_TOPIC": "events",
    "GAMELAKE_REGISTRY_URL": "http://127.0.0.1:8080",
    "GAMELAKE_GAMES_FILE": "contracts/games.yaml",
}


def _settings(**changes: str) -> IngestSettings:
    return IngestSettings.from_env(REQUIRED | changes)


def test_what_is_required_is_enough() -> None:
    settings = _settings()

    assert settings.lakehouse.location.uri == "file:///srv/lakehouse"
    assert settings.games_file == Path("contracts/games.yaml")
    assert settings.schema_wait.patience == timedelta(seconds=10)
    assert (settings.stream, settings.spark_jars, settings.kill) == ("ingest_events", None, None)


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("missing", [{}, {"": ""}], ids=["not there", "empty"])
def test_what_is_required_and_not_set_is_named(name: str, missing: dict[str, str]) -> None:
    variables = {key: value for key, value in REQUIRED.items() if key != name} | ({name: ""} if missing else {})

    with pytest.raises(SettingsError, match=rf"^{name} is not set; docs/settings\.md"):
        IngestSettings.from_env(variables)


_MISTAKES = [
    ("GAMELAKE_LAKEHOUSE", "/srv/lakehouse", "must start with file:/// or s3://"),
    ("GAMELAKE_LAKEHOUSE", "file://relative", "must start with file:/// or s3://"),
    ("GAMELAKE_LAKEHOUSE", "s3a://bucket", "must start with file:/// or s3://"),
    ("GAMELAKE_MAX_OFFSETS_PER_TRIGGER", "many", "is 'many', which is not a number"),
    ("GAMELAKE_MAX_OFFSETS_PER_TRIGGER", "0", "must be from 1 to 1e"),
    ("GAMELAKE_RECORDS_PER_TASK", "1.5", "must be a whole number"),
    ("GAMELAKE_CHUNK_RECORDS", "-1", "must be from 1"),
    ("GAMELAKE_TRIGGER_SECONDS", "10s", "which is not a number"),
    ("GAMELAKE_FLOOD_SHARE", "50", "must be from 0 to 1"),
    ("GAMELAKE_FLOOD_SHARE", "nan", "must be from 0 to 1"),
    ("GAMELAKE_FLOOD_RECORDS", "inf", "must be from 1"),
    ("GAMELAKE_SCHEMA_WAIT_SECONDS", "3601", "must be from 0 to 3600"),
    ("GAMELAKE_SCHEMA_RETRY_SECONDS", "-0.1", "must be from 0"),
    ("GAMELAKE_SCHEMA_MAX_DEPTH", "41", "must be from 1 to 40"),
    ("GAMELAKE_SCHEMA_MAX_COLUMNS", "0", "must be from 1 to 100000"),
    ("GAMELAKE_SCHEMA_MAX_BYTES", "1000", "must be from 1024"),
    ("GAMELAKE_RECORD_MAX_MIB", "0", "must be from 1 to 16384"),
    ("GAMELAKE_METRICS_PORT", "70000", "must be from 1 to 65535"),
    ("GAMELAKE_METRICS_PORT", "http", "is 'http', which is not a number"),
    ("GAMELAKE_KAFKA_CREDENTIALS_FILE", "/nowhere/kafka", "can't be read"),
    ("GAMELAKE_STREAM", "../other", "must be made of letters"),
    ("GAMELAKE_STREAM", "a b", "must be made of letters"),
    ("GAMELAKE_FAILPOINT", "sometime", "is 'sometime'"),
    ("GAMELAKE_FAILPOINT", "after_files:soon", "is 'after_files:soon'"),
]


@pytest.mark.parametrize(("name", "value", "problem"), _MISTAKES)
def test_what_is_malformed_is_named(name: str, value: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _settings(**{name: value})

    assert str(caught.value).startswith(f"{name} is ")
    assert problem in str(caught.value)


def test_what_is_set_is_taken() -> None:
    settings = _settings(
        GAMELAKE_STREAM="other",
        GAMELAKE_TRIGGER_SECONDS="0.5",
        GAMELAKE_FLOOD_SHARE="1",
        GAMELAKE_SPARK_JARS="build/jars",
        GAMELAKE_FAILPOINT="after_table_commit:3",
    )

    assert (settings.stream, settings.trigger_interval) == ("other", timedelta(seconds=0.5))
    assert (settings.flood.share, settings.spark_jars) == (1.0, Path("build/jars"))
    assert settings.kill == Kill(Failpoint.AFTER_TABLE_COMMIT, 3)


def test_keys_of_an_object_store_are_taken_and_never_printed() -> None:
    secrets = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "hidden too"}
    places = {"GAMELAKE_S3_ENDPOINT": "http://store:9000", "GAMELAKE_S3_REGION": "eu-north-1"}

    settings = _settings(GAMELAKE_LAKEHOUSE="s3://lake/house", **secrets, **places)

    assert settings.lakehouse.location.options == secrets | {
        "AWS_ENDPOINT_URL": "http://store:9000",
        "AWS_REGION": "eu-north-1",
        "AWS_ALLOW_HTTP": "true",
    }
    assert "hidden" not in repr(settings)


def test_kafkas_password_is_taken_from_its_file_and_never_printed(tmp_path: Path) -> None:
    file = tmp_path / "kafka"
    file.write_text('username=ingest\npassword=a=b"c\\d\n')

    kafka = _settings(GAMELAKE_KAFKA_CREDENTIALS_FILE=str(file)).kafka

    assert kafka.credentials == ServerCredentials("ingest", 'a=b"c\\d')
    assert kafka.for_clients()["sasl.password"] == 'a=b"c\\d'
    # JAAS has C's escapes inside quotes.
    assert kafka.for_spark()["kafka.sasl.jaas.config"].endswith('password="a=b\\"c\\\\d";')
    assert "a=b" not in repr(_settings(GAMELAKE_KAFKA_CREDENTIALS_FILE=str(file)))


def test_without_a_credentials_file_kafka_is_reached_anonymously() -> None:
    kafka = _settings().kafka

    assert kafka.for_clients() == {"bootstrap.servers": "127.0.0.1:9092"}
    assert kafka.for_spark() == {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    "content",
    ["", "username=ingest\n", "username=ingest\npassword=\n", "secret", "username=a\npassword=b\nrealm=c\n"],
    ids=["empty", "no password", "empty password", "bare", "a line too many"],
)
def test_a_malformed_credentials_file_is_named_and_not_quoted(tmp_path: Path, content: str) -> None:
    file = tmp_path / "kafka"
    file.write_text(content)

    with pytest.raises(SettingsError) as caught:
        _settings(GAMELAKE_KAFKA_CREDENTIALS_FILE=str(file))

    assert str(caught.value).startswith(f"GAMELAKE_KAFKA_CREDENTIALS_FILE is '{file}', which must hold two lines")
    assert "secret" not in str(caught.value).removeprefix(f"GAMELAKE_KAFKA_CREDENTIALS_FILE is '{file}'")


def test_the_options_of_the_telemetry_are_taken() -> None:
    heartbeat = Path("run/heartbeat")
    settings = _settings(
        GAMELAKE_METRICS_PORT="9108", GAMELAKE_METRICS_HOST="10.0.0.1", GAMELAKE_HEARTBEAT_FILE=str(heartbeat)
    )

    assert settings.telemetry == TelemetryOptions(metrics_port=9108, metrics_host="10.0.0.1", heartbeat_file=heartbeat)
    assert _settings().telemetry == TelemetryOptions()


def test_an_encrypted_store_is_not_asked_without_encryption() -> None:
    settings = _settings(GAMELAKE_LAKEHOUSE="s3://lake", GAMELAKE_S3_ENDPOINT="https://store")

    assert settings.lakehouse.location.options == {"AWS_ENDPOINT_URL": "https://store"}


def test_a_local_lakehouse_gets_no_keys() -> None:
    keys = {"AWS_SECRET_ACCESS_KEY": "hidden"}

    assert not _settings(**keys).lakehouse.location.options


def test_some_jobs_need_the_lakehouse_only() -> None:
    settings = LakehouseSettings.from_env({"GAMELAKE_LAKEHOUSE": "file:///srv/lakehouse"})

    assert settings.location.uri == "file:///srv/lakehouse"


def test_a_percent_encoded_lakehouse_is_refused_because_engines_read_it_differently() -> None:
    with pytest.raises(SettingsError, match="percent-encoding"):
        LakehouseSettings.from_env({"GAMELAKE_LAKEHOUSE": "file:///tmp/my%20lake"})


_VAULT = {"GAMELAKE_VAULT": "/srv/vault.db", "GAMELAKE_VAULT_KEYS_FILE": "/run/secrets/vault-keys"}


def test_the_vaults_password_is_taken_from_its_file_and_never_printed(tmp_path: Path) -> None:
    file = tmp_path / "vault"
    file.write_text("username=vault\npassword=hidden\n")
    uri = "postgresql://postgres:5432/vault?sslmode=require"

    settings = VaultSettings.from_env(_VAULT | {"GAMELAKE_VAULT": uri, "GAMELAKE_VAULT_CREDENTIALS_FILE": str(file)})

    assert settings.access.credentials == ServerCredentials("vault", "hidden")
    assert settings.access.file is None
    assert VaultSettings.from_env(_VAULT).access.file == Path("/srv/vault.db")
    assert "hidden" not in repr(settings)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://vault:hidden@postgres/vault",
        "postgresql://postgres/vault?password=hidden",
        "postgresql://postgres/vault?hidden",
        "mysql://vault:hidden@host/vault",
    ],
)
def test_an_impossible_vault_is_refused_without_quoting_its_address(uri: str) -> None:
    with pytest.raises(SettingsError, match="GAMELAKE_VAULT") as refusal:
        VaultSettings.from_env(_VAULT | {"GAMELAKE_VAULT": uri})

    assert "hidden" not in str(refusal.value)
    assert refusal.value.__cause__ is None
