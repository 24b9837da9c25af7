"""A small file system that can be enlarged while it is in use."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_AS_ROOT = () if os.geteuid() == 0 else ("sudo", "--non-interactive")


class NoSmallDiskError(Exception):
    """File systems can't be mounted here."""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system in memory."""

    folder: Path

    @classmethod
    @contextmanager
    def mounted(cls, folder: Path, mib: int) -> Iterator[Self]:
        """Mount the disk while the block runs.

        Raises:
            NoSmallDiskError: the user may not mount, or the system is not Linux.
        """
        folder.mkdir(parents=True)
        options = f"size={mib}m,uid={os.geteuid()},mode=0700"
        try:
            _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoSmallDiskError(f"no file system can be mounted: {error}") from error
        try:
            yield cls(folder)
        finally:
            _run("umount", "--lazy", str(folder))

    def grow(self, mib: int) -> None:
        """Set its total size."""
        _run("mount", "-o", f"remount,size={mib}m", str(self.folder))

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize


def _run(*command: str) -> None:
    subprocess.run((*_AS_ROOT, *command), check=True, capture_output=True)
