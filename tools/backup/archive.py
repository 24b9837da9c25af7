"""A backup as a folder: files, and a manifest with their digests; the manifest is written last and completes it."""

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


class BackupFile(msgspec.Struct, frozen=True):
    """A file of a backup: relative path, size in bytes, SHA-256."""

    path: str
    size: int
    digest: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a backup; `left_out` has the missing parts with the reason, `lakehouse` is the platform's URI."""

    name: str
    lakehouse: str
    made_at: datetime
    parts: tuple[str, ...]
    left_out: dict[str, str]
    files: tuple[BackupFile, ...]

    def replaces(self, older: "BackupManifest") -> bool:
        """Return True if this backup may replace an older one: it is of the same platform, with the same parts."""
        return (self.lakehouse, sorted(self.parts)) == (older.lakehouse, sorted(older.parts))

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class NewBackup:
    """A backup that is being made, under a temporary name."""

    folder: Path
    made_at: datetime

    @classmethod
    def under(cls, parent: Path, made_at: datetime) -> "NewBackup":
        """Start a backup that is named after its time.

        Raises:
            BackupError: the folder can't be created.
        """
        folder = parent / f".{made_at:{_NAME}}.part"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=_OWNER_ALONE)
        except OSError as error:
            raise BackupError(f"'{folder}' can't be created: {error.strerror}") from error
        return cls(folder, made_at)

    @property
    def name(self) -> str:
        """The name of the complete backup."""
        return f"{self.made_at:{_NAME}}"

    def close(self, lakehouse: str, parts: tuple[str, ...], left_out: dict[str, str]) -> tuple[Path, BackupManifest]:
        """Write the manifest, and rename the folder to its final name."""
        files = tuple(_file_entry(self.folder, path) for path in _files_of(self.folder))
        contents = BackupManifest(
            name=self.name,
            lakehouse=lakehouse,
            made_at=self.made_at,
            parts=parts,
            left_out=left_out,
            files=files,
        )
        listed = self.folder / _LIST
        listed.write_bytes(msgspec.json.format(msgspec.json.encode(contents)))
        with listed.open("rb") as written:
            os.fsync(written.fileno())
        place = self.folder.with_name(self.name)
        self.folder.rename(place)
        return place, contents

    def discard(self) -> None:
        """Delete what was written so far."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_contents(folder: Path) -> BackupManifest:
    """Read the manifest of a backup.

    Raises:
        BackupError: the folder has no complete backup.
    """
    try:
        return msgspec.json.decode((folder / _LIST).read_bytes(), type=BackupManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BackupError(f"'{folder}' is not a backup, or an incomplete one") from error


def check(folder: Path) -> BackupManifest:
    """Compare all files of a backup with its manifest; returns the manifest.

    Raises:
        BackupError: a file is missing or was changed.
    """
    contents = read_contents(folder)
    for file in contents.files:
        try:
            found = _file_entry(folder, folder / file.path)
        except OSError as error:
            raise BackupError(f"'{folder}' is incomplete: {file.path} is missing") from error
        if found != file:
            raise BackupError(f"'{folder}': {file.path} was changed after the backup was made")
    return contents


def complete_backups(parent: Path) -> list[Path]:
    """Return the complete backups in a folder, oldest first."""
    found = [path for path in parent.iterdir() if (path / _LIST).is_file() and not path.name.startswith(".")]
    return sorted(found, key=lambda path: path.name)


def prune(parent: Path, keep: int, newest: BackupManifest) -> list[str]:
    """Delete all but the `keep` newest backups that `newest` replaces; returns the names of the deleted ones.

    Backups of another platform, or with parts that the newest lacks, stay: they are the only ones of these.
    """
    over = [folder for folder in complete_backups(parent) if newest.replaces(read_contents(folder))][:-keep]
    for folder in over:
        # Without its manifest it no longer counts as a backup, even if deleting the rest fails.
        (folder / _LIST).unlink()
        shutil.rmtree(folder)
    return [folder.name for folder in over]


def _files_of(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _LIST)


def _file_entry(folder: Path, path: Path) -> BackupFile:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(_AT_ONCE):
            digest.update(piece)
    return BackupFile(path.relative_to(folder).as_posix(), path.stat().st_size, digest.hexdigest())
