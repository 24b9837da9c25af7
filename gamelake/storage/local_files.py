"""Writes of a store on a local disk, which a power cut leaves whole or undone.

obstore and delta-rs sync nothing: a power cut can leave an empty file under the name of a manifest or a log entry, as
the name reaches the disk by the file system's journal and the content does not. Here content is on the disk before its
name is there, and the name before a write returns, so whatever a later write says of an earlier one holds.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

_NAMES = 2**63


def create_file(file: Path, content: bytes) -> None:
    """Create a file that must not exist yet.

    Raises:
        FileExistsError: it exists, and stays as it is.
    """
    staged = _staged(file, content)
    try:
        # Refused by the file system if the name is taken (POSIX link(2), EEXIST).
        file.hardlink_to(staged)
    finally:
        staged.unlink()
    sync(file.parent)


def replace_file(file: Path, content: bytes) -> None:
    """Create or replace a file."""
    staged = _staged(file, content)
    try:
        staged.replace(file)
    except OSError:
        staged.unlink()
        raise
    sync(file.parent)


def sync(path: Path) -> None:
    """Write a file's content, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _staged(file: Path, content: bytes) -> Path:
    # obstore and delta-rs leave names of this form out of listings.
    staged = file.with_name(f"{file.name}#{secrets.randbelow(_NAMES)}")
    try:
        descriptor = _open(staged)
    except FileNotFoundError:
        _make_folder(file.parent)
        descriptor = _open(staged)
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
    except OSError:
        staged.unlink()
        raise
    return staged


def _open(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir()
    sync(folder.parent)
