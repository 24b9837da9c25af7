"""A file system that can lose its power: what was not synced is gone, as after a real power cut.

It is an ext4 file system in an image file. Its shutdown, which file systems have for tests of this kind, stops every
write at once: neither dirty pages nor the journal that is still in memory reach the image. A disk that loses what it
has acknowledged to the kernel is not simulated.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.eventually import eventually

_AS_ROOT = () if os.geteuid() == 0 else ("sudo", "--non-interactive")
# The journal is otherwise written every 5 seconds, which would keep some writes that were never synced.
_OPTIONS = "loop,commit=300,noatime"
# Source: Linux, fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32), EXT4_GOING_FLAGS_NOLOGFLUSH is 2.
_SHUTDOWN, _WITHOUT_THE_JOURNAL = 0x8004587D, struct.pack("I", 2)
_AS_A_PROGRAM = (
    f"import fcntl, os, sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), {_SHUTDOWN}, {_WITHOUT_THE_JOURNAL!r})"
)


class NoPowerCutError(Exception):
    """File systems can't be created or mounted here."""


@dataclass(frozen=True, slots=True)
class PowerCutDisk:
    """A mounted file system that `cut` takes the power from."""

    folder: Path
    _image: Path

    @classmethod
    @contextmanager
    def mounted(cls, folder: Path, mib: int) -> Iterator[Self]:
        """Create the file system, and mount it while the block runs; end all processes that use it before.

        Raises:
            NoPowerCutError: there is no loop device, the user may not mount, or the system is not Linux.
        """
        folder.mkdir(parents=True)
        image = folder.with_suffix(".img")
        disk = cls(folder, image)
        try:
            with image.open("xb") as file:
                file.truncate(mib * 2**20)
            owner = f"root_owner={os.geteuid()}:{os.getegid()},lazy_itable_init=0,lazy_journal_init=0"
            # Not on every user's path.
            program = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "mkfs.ext4"
            subprocess.run((program, "-q", "-m", "0", "-E", owner, image), check=True, capture_output=True)
            disk._mount()
            # To a lakehouse, a folder of tables.
            _run("rmdir", str(folder / "lost+found"))
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoPowerCutError(f"no file system can be made in an image and mounted: {error}") from error
        try:
            yield disk
        finally:
            _run("umount", "--lazy", str(folder))
            image.unlink()

    def write_journal(self) -> None:
        """Write the journal, as any program's sync does: names of files are then kept, unsynced contents are not."""
        file = self.folder / ".synced"
        with file.open("wb") as new:
            os.fsync(new.fileno())
        file.unlink()

    def cut(self) -> None:
        """Cut the power: each read and write fails from now on, and nothing that was not synced is kept."""
        if _AS_ROOT:
            _run(sys.executable, "-c", _AS_A_PROGRAM, str(self.folder))
            return
        # In this process: what others do while a program starts would still be kept.
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, _WITHOUT_THE_JOURNAL)
        finally:
            os.close(folder)

    def restore(self) -> None:
        """Mount what the power cut has left; the processes that used it must have ended."""

        def is_free() -> bool:
            return (
                subprocess.run((*_AS_ROOT, "umount", str(self.folder)), capture_output=True, check=False).returncode
                == 0
            )

        eventually(is_free)
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-t", "ext4", "-o", _OPTIONS, str(self._image), str(self.folder))


def _run(*command: str) -> None:
    subprocess.run((*_AS_ROOT, *command), check=True, capture_output=True)
