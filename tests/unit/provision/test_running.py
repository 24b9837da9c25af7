"""What the provisioning programs share: settings, waiting, and the log of changes."""

from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from services.provision.object_store import read_key
from services.provision.provisioning import ChangeLog, ServiceRefusedError, ServiceUnavailableError, wait_for
from services.provision.settings import BucketsSettings, SubjectsSettings, TopicsSettings
from tests.support.failing import failing


class Starting:
    """A service that is ready after some requests."""

    def __init__(self, silent: int) -> None:
        self.silent = silent
        self.asked = 0

    def answer(self) -> str:
        """Ready, once it is."""
        self.asked += 1
        if self.asked <= self.silent:
            raise ServiceUnavailableError("it is starting")
        return "ready"


def test_a_service_is_polled_until_it_is_ready() -> None:
    service = Starting(silent=1)

    assert wait_for("kafka", service.answer, timedelta(seconds=30)) == "ready"
    assert service.asked == 2


def test_a_timeout_names_the_service_and_the_next_command() -> None:
    service = Starting(silent=1000)

    with pytest.raises(
        ServiceUnavailableError, match="kafka was not ready within 0 s: it is starting; 'make logs S=kafka'"
    ):
        wait_for("kafka", service.answer, timedelta(0))


def test_a_refusal_is_not_waited_for() -> None:
    with pytest.raises(ServiceRefusedError):
        wait_for("kafka", failing(ServiceRefusedError("no")), timedelta(days=1))


def test_a_run_prints_its_changes() -> None:
    said: list[str] = []
    changes = ChangeLog("topics", said.append)

    changes.note("created events")
    changes.close()

    assert said == ["topics: created events"]


def test_a_skipped_difference_is_no_change() -> None:
    said: list[str] = []
    changes = ChangeLog("topics", said.append)

    changes.skipped("the topic other")
    changes.close()

    assert said == ["topics: left alone: the topic other", "topics: nothing to change"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A directory with the admin's secret."""
    (tmp_path / "kafka-admin").write_text("username=admin\npassword=0123456789abcdef\n")
    return tmp_path


def test_the_declarations_of_the_stack_are_found_without_being_named(secrets: Path) -> None:
    settings = TopicsSettings.from_env({"GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092", "PROVISION_SECRETS": str(secrets)})
    buckets = BucketsSettings.from_env({"GAMELAKE_S3_ENDPOINT": "http://object-store:9000"})
    subjects = SubjectsSettings.from_env({"GAMELAKE_REGISTRY_URL": "http://registry:8080/apis/ccompat/v7/"})

    assert settings.file.is_file()
    assert buckets.file.is_file()
    assert subjects.file.is_file()
    assert subjects.url == "http://registry:8080/apis/ccompat/v7"
    assert settings.patience == timedelta(seconds=180)


def test_no_setting_shows_the_password_when_it_is_printed(secrets: Path) -> None:
    settings = TopicsSettings.from_env({"GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092", "PROVISION_SECRETS": str(secrets)})

    assert "0123456789abcdef" not in repr(settings)


@pytest.mark.parametrize("endpoint", ["object-store:9000", "http://object-store:9000/lakehouse", "s3://lakehouse"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(SettingsError, match="it must be like http://object-store:9000"):
        BucketsSettings.from_env({"GAMELAKE_S3_ENDPOINT": endpoint})


def test_a_missing_address_is_named() -> None:
    with pytest.raises(SettingsError, match="GAMELAKE_REGISTRY_URL is not set"):
        SubjectsSettings.from_env({})


def test_a_key_file_that_holds_no_key_is_named_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "object-store-trino"
    file.write_text("[other]\naws_access_key_id = hunter22\n")

    with pytest.raises(SettingsError, match=r"object-store-trino has no key .* run 'make up'") as raised:
        read_key(file)

    assert "hunter22" not in str(raised.value)
