"""The stack's object store on a disk whose power fails: with OBJECT_STORE_SYNC=on each acknowledged object is kept."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NoReturn

import pytest

from gamelake.objects.store import Store
from tests.embedded.power_cut import NoPowerCutError, PowerCutDisk
from tests.stack.object_store import ObjectStore
from tests.stack.platform import Stack
from tools.embedded.ports import HOST, free_port
from tools.embedded.process import ChildProcess, Program

DISK_MIB = 1024
KEY, SECRET = "power-cut", "not-a-secret-but-long"
OBJECTS = 30
# MinIO keeps small objects within their metadata, and large ones in files of their own.
SMALL, LARGE = 1_000, 600_000


@pytest.fixture
def program(stack: Stack, tmp_path: Path) -> Path:
    """The program of the stack's object store."""
    stack.compose("cp", "object-store:/usr/local/bin/minio", str(tmp_path / "minio"))
    return tmp_path / "minio"


@pytest.fixture
def disk(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> Iterator[PowerCutDisk]:
    try:
        with PowerCutDisk.mounted(tmp_path / "disk", DISK_MIB) as disk:
            yield disk
    except NoPowerCutError as error:
        missing_service(str(error))


class Server:
    """An object store of its own, with the setting that OBJECT_STORE_SYNC=on gives the stack's."""

    def __init__(self, program: Path, folder: Path, log_file: Path) -> None:
        self._port = free_port()
        address = f"{HOST}:{self._port}"
        self._program = Program(
            name="MinIO",
            command=(str(program), "server", "--quiet", str(folder), "--address", address),
            log_file=log_file,
            environment={
                "MINIO_ROOT_USER": KEY,
                "MINIO_ROOT_PASSWORD": SECRET,
                "MINIO_BROWSER": "off",
                "MINIO_SYNC_BOOT": "on",
                "MINIO_FS_OSYNC": "on",
            },
        )
        self.objects = ObjectStore(f"http://{address}", KEY, SECRET)

    def start(self) -> ChildProcess:
        """Start it, and return when it takes requests."""
        process = ChildProcess(self._program)
        process.wait_until(self._is_healthy, timedelta(seconds=60))
        return process

    def _is_healthy(self) -> bool:
        connection = HTTPConnection(HOST, self._port, timeout=2)
        try:
            connection.request("GET", "/minio/health/cluster")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def content(name: str, size: int) -> bytes:
    return name.encode().ljust(size, b".")


@pytest.mark.slow
def test_a_store_that_syncs_keeps_each_acknowledged_object_whole(
    program: Path, disk: PowerCutDisk, tmp_path: Path
) -> None:
    server = Server(program, disk.folder / "data", tmp_path / "minio.log")
    process = server.start()
    try:
        server.objects.client.make_bucket("bucket")
        store = Store(server.objects.location("s3://bucket/lake"))
        objects = {f"table-{number % 9}/{number}": (SMALL, LARGE)[number % 2] for number in range(OBJECTS)}
        for name, size in objects.items():
            assert store.put_new(name, content(name, size))
        # Without the setting the last objects would be missing: the next one's sync would have kept them.
        disk.cut()
        process.kill()
        disk.restore()
        process = server.start()
        damaged = [name for name, size in objects.items() if store.get(name) != content(name, size)]
    finally:
        process.kill()

    assert damaged == []
