"""What a run in front of the door found, as the file that keeps it."""

from pathlib import Path

import msgspec

from benchmarks.results import Lap, write_json

OURS, PEER = "front door", "FastAPI + aiokafka"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Bodies that were sent as fast as a door took them, or (`rate` requests a second) at a rate.

    Latencies in milliseconds, of all requests. The lap's CPU seconds are the door's processes'.
    """

    door: str
    content: str
    events_per_request: int
    round: int
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
        """Events per second that the door's processes spent, on whichever core."""
        return self.accepted * self.events_per_request / (self.lap.cpu_seconds or float("nan"))


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What the front door held, in MiB, each second of a stretch, and how it answered meanwhile, by status."""

    stretch: str
    mib: tuple[float, ...]
    statuses: dict[str, int]


class FrontDoorResults(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    bytes_per_event: dict[str, int]
    loads: tuple[Load, ...] = ()
    memory: tuple[Memory, ...] = ()

    def of(self, door: str, content: str, events: int, *, steady: bool = False) -> tuple[Load, ...]:
        """The loads of one kind, by round."""
        return tuple(
            each
            for each in self.loads
            if (each.door, each.content, each.events_per_request, bool(each.rate)) == (door, content, events, steady)
        )


def save(results: FrontDoorResults, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"front-door-{results.measured_at[:10]}-{results.commit}", "front-door-latest")
