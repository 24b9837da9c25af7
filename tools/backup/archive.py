"""A backup as a folder: its files, and a list of them with digests, which is written last; half a one never counts."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from gamelake.model.errors import BackupError

_LIST = "backup.json"
_NAME = "%Y-%m-%dT%H-%M-%SZ"
_OWNER_ALONE = 0o700
_AT_ONCE = 2**20


class KeptFile(msgspec.Struct, frozen=True):
    """A file of a backup: its path inside, its size in bytes, its SHA-256."""

    path: str
    size: int
    digest: str


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds; `left_out` are parts that it lacks, and why."""

    name: str
    made_at: datetime
    parts: tuple[str, ...]
    left_out: dict[str, str]
    files: tuple[KeptFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class NewBackup:
    """A backup that is being made, beside its place."""

    folder: Path
    made_at: datetime

    @classmethod
    def under(cls, parent: Path, made_at: datetime) -> "NewBackup":
        """Begin one that is named after its moment.

        Raises:
            BackupError: the folder can't be made.
        """
        folder = parent / f".{made_at:{_NAME}}.part"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=_OWNER_ALONE)
        except OSError as error:
            raise BackupError(f"'{folder}' can't be made: {error.strerror}") from error
        return cls(folder, made_at)

    @property
    def name(self) -> str:
        """What it is called once it is whole."""
        return f"{self.made_at:{_NAME}}"

    def close(self, parts: tuple[str, ...], left_out: dict[str, str]) -> tuple[Path, Contents]:
        """Write the list, and give the backup its name."""
        files = tuple(_kept(self.folder, path) for path in _files_of(self.folder))
        contents = Contents(name=self.name, made_at=self.made_at, parts=parts, left_out=left_out, files=files)
        listed = self.folder / _LIST
        listed.write_bytes(msgspec.json.format(msgspec.json.encode(contents)))
        with listed.open("rb") as written:
            os.fsync(written.fileno())
        place = self.folder.with_name(self.name)
        self.folder.rename(place)
        return place, contents

    def discard(self) -> None:
        """Leave nothing of one that failed."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_contents(folder: Path) -> Contents:
    """What a backup says that it holds.

    Raises:
        BackupError: it is none, or was not finished.
    """
    try:
        return msgspec.json.decode((folder / _LIST).read_bytes(), type=Contents)
    except (OSError, msgspec.DecodeError) as error:
        raise BackupError(f"'{folder}' is no backup, or one that was not finished") from error


def check(folder: Path) -> Contents:
    """Read a backup from its first to its last byte.

    Raises:
        BackupError: a file is missing, or is not what it was.
    """
    contents = read_contents(folder)
    for file in contents.files:
        try:
            found = _kept(folder, folder / file.path)
        except OSError as error:
            raise BackupError(f"'{folder}' lacks {file.path}: it is not whole") from error
        if found != file:
            raise BackupError(f"'{folder}': {file.path} is not what it was when the backup was made")
    return contents


def whole_backups(parent: Path) -> list[Path]:
    """The backups in a folder, oldest first."""
    found = [path for path in parent.iterdir() if (path / _LIST).is_file() and not path.name.startswith(".")]
    return sorted(found, key=lambda path: path.name)


def prune(parent: Path, keep: int) -> list[str]:
    """Delete all but the newest backups; gives the names of those that went."""
    over = whole_backups(parent)[:-keep]
    for folder in over:
        # Without its list it is none any more, however far the rest gets.
        (folder / _LIST).unlink()
        shutil.rmtree(folder)
    return [folder.name for folder in over]


def _files_of(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _LIST)


def _kept(folder: Path, path: Path) -> KeptFile:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(_AT_ONCE):
            digest.update(piece)
    return KeptFile(path.relative_to(folder).as_posix(), path.stat().st_size, digest.hexdigest())
