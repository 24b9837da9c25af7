"""The file of the vault's keys: creation, adding and removing of key-encryption keys; replaced atomically.

Writers lock its folder, so that concurrent changes are not lost.
"""

import fcntl
import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.model.errors import SettingsError

KEY_BYTES = 32
_OWNER_ALONE = 0o600
_SETTING = "GAMELAKE_VAULT_KEYS_FILE"
_Base64Key = Annotated[bytes, msgspec.Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file: the index key for finding players, and the key-encryption keys by id."""

    index: _Base64Key
    current: str
    keys: dict[str, _Base64Key]

    def __repr__(self) -> str:
        """Without the keys, which would appear in tracebacks."""
        return f"KeyFile(current={self.current!r}, keys={sorted(self.keys)!r})"


def read_key_file(file: Path) -> KeyFile:
    """Read and check the file.

    Raises:
        SettingsError: it can't be read or is invalid; the message quotes no content.
    """
    try:
        found = msgspec.yaml.decode(file.read_bytes(), type=KeyFile)
    except OSError as error:
        raise SettingsError(f"{_SETTING} is '{file}', which can't be read") from error
    except (msgspec.DecodeError, ValueError):
        problem = "must have `index`, `current` and `keys`, each key 32 bytes in base64"
        raise SettingsError(f"{_SETTING} is '{file}', which {problem}") from None
    if found.current not in found.keys:
        raise SettingsError(f"{_SETTING} is '{file}', whose `current` is the id of none of its keys")
    return found


def make_key_file(file: Path) -> str:
    """Create a file with new keys and mode 600; returns the id of the key-encryption key.

    Raises:
        SettingsError: the file exists, or can't be written.
    """
    key_id = _new_id()
    made = KeyFile(index=os.urandom(KEY_BYTES), current=key_id, keys={key_id: os.urandom(KEY_BYTES)})
    with _temporary_file(file, made) as new:
        new.chmod(_OWNER_ALONE)
        try:
            # Unlike a rename, a link never replaces a file.
            os.link(new, file)
        except FileExistsError:
            raise SettingsError(f"'{file}' exists already, and without its keys no player could be read") from None
    return key_id


def add_key(file: Path) -> str:
    """Add a new key-encryption key and make it current; returns its id.

    Raises:
        SettingsError: the file is invalid, or can't be written.
    """
    with _changing(file):
        found = read_key_file(file)
        key_id = _new_id()
        if key_id in found.keys:
            raise SettingsError(f"'{file}' got a key within this very second; try again")
        _replace(file, msgspec.structs.replace(found, current=key_id, keys={**found.keys, key_id: os.urandom(32)}))
    return key_id


def remove_key(file: Path, key_id: str, players_that_need: Callable[[str], int]) -> None:
    """Remove a key-encryption key for good: what it wraps in older backups can never be read again.

    Raises:
        SettingsError: the file has no such key, it is the current one, or players need it.
    """
    with _changing(file):
        found = read_key_file(file)
        if key_id not in found.keys:
            raise SettingsError(f"'{file}' has no key '{key_id}', only {sorted(found.keys)}")
        if key_id == found.current:
            raise SettingsError(f"'{key_id}' is the current key of '{file}', which wraps new players' keys")
        if players := players_that_need(key_id):
            raise SettingsError(f"'{key_id}' wraps the keys of {players} players: run jobs/rotate_vault_keys.py first")
        left = {each: key for each, key in found.keys.items() if each != key_id}
        _replace(file, msgspec.structs.replace(found, keys=left))


def _new_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


@contextmanager
def _changing(file: Path) -> Iterator[None]:
    try:
        folder = os.open(file.parent, os.O_RDONLY)
    except OSError as error:
        raise SettingsError(f"the folder of '{file}' can't be opened") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _replace(file: Path, content: KeyFile) -> None:
    """Replace the file atomically; its owner and mode stay."""
    with _temporary_file(file, content) as new:
        before = file.stat()
        new.chmod(before.st_mode & 0o777)
        if os.geteuid() == 0:
            shutil.chown(new, before.st_uid, before.st_gid)
        new.replace(file)


@contextmanager
def _temporary_file(file: Path, content: KeyFile) -> Iterator[Path]:
    lines = [f"index: {_text(content.index)}", f"current: {content.current}", "keys:"]
    lines += [f"  {key_id}: {_text(key)}" for key_id, key in content.keys.items()]
    try:
        with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}.", delete=False) as new:
            new.write("\n".join(lines) + "\n")
            new.flush()
            os.fsync(new.fileno())
    except OSError as error:
        raise SettingsError(f"the folder of '{file}' is not writable") from error
    path = Path(new.name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _text(key: bytes) -> str:
    return b64encode(key).decode()
