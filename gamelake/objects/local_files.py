"""Atomic and durable writes of a store on a local disk: a power cut leaves each write complete or undone.

obstore and delta-rs call no fsync. After a power cut a manifest or a log entry can be an empty file: the file system's
journal has its name, but the content never reached the disk. Here the content reaches the disk before the name, and the
name before the write returns. So a later write may rely on an earlier one.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

_NAMES = 2**63


def create_file(file: Path, content: bytes) -> None:
    """Create a file that must not exist yet, and its folders.

    Raises:
        FileExistsError: the file exists. It is not changed.
        OSError: the file could not be written, for example because the disk is full.
    """
    staged = _staged(file, content)
    try:
        # The file system refuses this if the name exists (POSIX link(2), EEXIST).
        file.hardlink_to(staged)
    finally:
        staged.unlink()
    sync(file.parent)


def replace_file(file: Path, content: bytes) -> None:
    """Create or replace a file, and create its folders.

    Raises:
        OSError: the file could not be written; an older one is not changed.
    """
    staged = _staged(file, content)
    try:
        staged.replace(file)
    except OSError:
        staged.unlink()
        raise
    sync(file.parent)


def sync(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _staged(file: Path, content: bytes) -> Path:
    # obstore and delta-rs omit names of this form from listings.
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
    with suppress(FileExistsError):  # another process has created it first
        folder.mkdir()
    sync(folder.parent)
