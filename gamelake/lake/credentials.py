"""Keys of an object store, from the credentials file that all AWS tools share."""

import configparser
from collections.abc import Mapping
from pathlib import Path

from gamelake.errors import SettingsError

_NAMES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}


def shared_credentials(file: Path, profile: str) -> Mapping[str, str]:
    """A profile's keys, under the names of the environment variables that mean the same.

    Source: AWS SDKs and Tools Reference Guide, heading "Format of the credentials file".

    Raises:
        SettingsError: the file or the profile is missing, or has no keys; no value of the file is in the text.
    """
    section = _section(file, profile)
    if "aws_access_key_id" not in section or "aws_secret_access_key" not in section:
        raise SettingsError(
            f"the profile '{profile}' in {file}, which AWS_SHARED_CREDENTIALS_FILE names, "
            "lacks aws_access_key_id or aws_secret_access_key"
        )
    return {variable: section[name] for name, variable in _NAMES.items() if section.get(name)}


def _section(file: Path, profile: str) -> Mapping[str, str]:
    # No default section and no interpolation: a secret may hold a percent sign.
    parser = configparser.ConfigParser(default_section="", interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
        return parser[profile]
    except OSError as error:
        raise SettingsError(
            f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which can't be read: {error.strerror}"
        ) from error
    except (configparser.Error, UnicodeDecodeError):
        # The parser's own text quotes the line.
        raise SettingsError(f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which is no credentials file") from None
    except KeyError:
        raise SettingsError(
            f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which has no profile '{profile}'; AWS_PROFILE names another one"
        ) from None
