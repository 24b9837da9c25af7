"""The credentials file that all AWS tools share: keys by profile, and no secret in an error."""

from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from gamelake.objects.store import shared_credentials

_FILE = """\
[default]
aws_access_key_id = key
aws_secret_access_key = hid%den
[other]
aws_access_key_id=another
aws_secret_access_key=hidden
aws_session_token=hidden too
region = eu-north-1
[half]
aws_access_key_id = key
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "credentials"
    path.write_text(_FILE)
    return path


def test_a_profile_has_its_keys_under_the_names_of_the_variables(file: Path) -> None:
    assert shared_credentials(file, "default") == {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hid%den"}
    assert shared_credentials(file, "other") == {
        "AWS_ACCESS_KEY_ID": "another",
        "AWS_SECRET_ACCESS_KEY": "hidden",
        "AWS_SESSION_TOKEN": "hidden too",
    }


def test_a_profile_that_is_missing_is_named(file: Path) -> None:
    with pytest.raises(SettingsError, match="no profile 'unknown'; AWS_PROFILE"):
        shared_credentials(file, "unknown")


def test_a_profile_without_a_secret_is_named(file: Path) -> None:
    with pytest.raises(SettingsError, match=r"the profile 'half' .* lacks aws_access_key_id or aws_secret_access_key"):
        shared_credentials(file, "half")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere', which can't be read: No such file"):
        shared_credentials(tmp_path / "nowhere", "default")


def test_a_file_of_another_kind_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text("hidden and no profile")

    with pytest.raises(SettingsError, match="which is not a credentials file") as caught:
        shared_credentials(path, "default")

    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
