"""The services that are measured, each alone on one core; everything else has the others."""

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.gateway.client import Sender
from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.ports import HOST
from tools.embedded.process import Program

GAME = "archery_duel"
_CORE = 0
_MIB = 2**20
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_RATE = 10_000_000


def leave_a_core() -> None:
    """Keep this process and its future children off the services' core, if there is more than one core."""
    others = os.sched_getaffinity(0) - {_CORE}
    if others:
        os.sched_setaffinity(0, others)


class MeasuredGateway(EmbeddedGateway):
    """The gateway, on a core of its own."""

    module = "services.gateway"

    def __init__(self, directory: Path, backing: GatewayBackend, certificates: Path | None = None) -> None:
        super().__init__(directory, backing, certificates=certificates)
        self.make_keys([GAME], _RATE)

    def program(self) -> Program:
        """See `EmbeddedGateway`."""
        command = ("taskset", "--cpu-list", str(_CORE), sys.executable, "-m", self.module)
        return replace(super().program(), command=command, name=self.name)

    def sender(self) -> Sender:
        """A game that sends to it."""
        key = msgspec.json.decode(self.keys_file.read_bytes())["keys"][0]
        return Sender(HOST, self.port, key["id"], key["secrets"][0].encode(), self.tls)

    def resident_mib(self) -> float:
        """What the process that serves holds of the memory, in MiB: the largest of the program's processes."""
        return max((_resident_bytes(pid) for pid in _tree(self.process.pid)), default=0) / _MIB


class HttpsGateway(MeasuredGateway):
    """The gateway by HTTPS, on the same core."""

    name = "gateway by HTTPS"

    def __init__(self, directory: Path, backing: GatewayBackend) -> None:
        certificates = directory / "certificates"
        CertificateDirectory(certificates, ChangeLog("certificates")).update(["ingest"], datetime.now(UTC))
        super().__init__(directory, backing, certificates)


class PeerGateway(MeasuredGateway):
    """The peer, on the same core."""

    name = "peer"
    module = "benchmarks.gateway.peer"


def _tree(root: int) -> list[int]:
    children = Path(f"/proc/{root}/task/{root}/children")
    try:
        pids = [int(pid) for pid in children.read_text().split()]
    except OSError:
        return []
    return [root, *(found for pid in pids for found in _tree(pid))]


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
