"""The results of a benchmark of the ingest gateway, as the file that keeps them."""

from pathlib import Path

import msgspec

from benchmarks.results import Lap, write_json

OURS, OURS_BY_HTTPS, PEER = "gateway", "gateway by HTTPS", "FastAPI + aiokafka"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Bodies that were sent as fast as the service took them, or (`rate` requests a second) at a rate.

    Latencies in milliseconds, of all requests. The lap's CPU seconds are those of the service's processes.
    """

    service: str
    content: str
    events_per_request: int
    run: int
    connections: int
    rate: float
    accepted: int
    refused: int
    p50: float
    p99: float
    lap: Lap
    sender_cpu_seconds: float

    @property
    def events_per_second(self) -> float:
        """Events that were acknowledged per second."""
        return self.accepted * self.events_per_request / self.lap.seconds

    @property
    def requests_per_second(self) -> float:
        """Requests that were acknowledged per second."""
        return self.accepted / self.lap.seconds

    @property
    def events_per_cpu_second(self) -> float:
        """Events per second that the service's processes spent, on whichever core."""
        return self.accepted * self.events_per_request / (self.lap.cpu_seconds or float("nan"))


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway's resident memory in MiB, each second of a phase, and its responses by status."""

    stretch: str
    mib: tuple[float, ...]
    statuses: dict[str, int]


class GatewayResults(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    bytes_per_event: dict[str, int]
    loads: tuple[Load, ...] = ()
    memory: tuple[Memory, ...] = ()

    def of(self, service: str, content: str, events: int, *, steady: bool = False) -> tuple[Load, ...]:
        """The loads of one kind, one for each run."""
        return tuple(
            each
            for each in self.loads
            if (each.service, each.content, each.events_per_request, bool(each.rate))
            == (service, content, events, steady)
        )


def save(results: GatewayResults, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"gateway-{results.measured_at[:10]}-{results.commit}", "gateway-latest")
