"""Settings: what is missing or malformed is named before any data moves."""

from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.errors import SettingsError
from gamelake.failpoints import Failpoint, Kill
from gamelake.settings import IngestSettings, LakehouseSettings

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
    ("GAMELAKE_MAX_OFFSETS_PER_TRIGGER", "many", "is 'many', which is no number"),
    ("GAMELAKE_MAX_OFFSETS_PER_TRIGGER", "0", "must be from 1 to 1e"),
    ("GAMELAKE_RECORDS_PER_TASK", "1.5", "must be a whole number"),
    ("GAMELAKE_CHUNK_RECORDS", "-1", "must be from 1"),
    ("GAMELAKE_TRIGGER_SECONDS", "10s", "which is no number"),
    ("GAMELAKE_FLOOD_SHARE", "50", "must be from 0 to 1"),
    ("GAMELAKE_FLOOD_SHARE", "nan", "must be from 0 to 1"),
    ("GAMELAKE_FLOOD_RECORDS", "inf", "must be from 1"),
    ("GAMELAKE_SCHEMA_WAIT_SECONDS", "3601", "must be from 0 to 3600"),
    ("GAMELAKE_SCHEMA_RETRY_SECONDS", "-0.1", "must be from 0"),
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


def test_keys_may_stand_in_a_file_that_the_variables_overrule(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = key\naws_secret_access_key = hidden\n")
    named = {"GAMELAKE_LAKEHOUSE": "s3://lake", "AWS_SHARED_CREDENTIALS_FILE": str(file)}
    given = {"AWS_ACCESS_KEY_ID": "given", "AWS_SECRET_ACCESS_KEY": "hidden too"}

    assert _settings(**named).lakehouse.location.options == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hidden",
    }
    assert _settings(**named, **given).lakehouse.location.options == given
    with pytest.raises(SettingsError, match="no profile 'other'"):
        _settings(**named, AWS_PROFILE="other")


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
